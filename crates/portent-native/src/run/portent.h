/* Marks for Portent: which steps of a program belong together.
 *
 * Between portent_atomic_begin and portent_atomic_end, what a thread does to shared memory is meant to look as if it were done at
 * once. `portent check` then tells every way in which it does not. Blocks may be nested: the outermost counts.
 *
 * Nothing is needed to build without Portent but this file: the marks then do nothing.
 */
#ifndef PORTENT_H
#define PORTENT_H

#ifdef __cplusplus
extern "C" {
#endif
/* Part of Portent's runtime, where it is linked. */
void portent_mark_begin(const char *name) __attribute__((weak));
void portent_mark_end(const char *name) __attribute__((weak));
#ifdef __cplusplus
}
#endif

/* Begins a block; `name` is a string, and stands in reports. */
#define portent_atomic_begin(name)         \
    do {                                   \
        if (portent_mark_begin)            \
            portent_mark_begin(name);      \
    } while (0)

/* Ends the block that was begun last. */
#define portent_atomic_end(name)           \
    do {                                   \
        if (portent_mark_end)              \
            portent_mark_end(name);        \
    } while (0)

#ifdef __cplusplus
namespace portent {
/* A block from here to the end of the scope, however that is left. */
class atomic_block {
public:
    explicit atomic_block(const char *name) : name_(name) { portent_atomic_begin(name_); }
    ~atomic_block() { portent_atomic_end(name_); }
    atomic_block(const atomic_block &) = delete;
    atomic_block &operator=(const atomic_block &) = delete;

private:
    const char *name_;
};
} // namespace portent
#endif

#endif
