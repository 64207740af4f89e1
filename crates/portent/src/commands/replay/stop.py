import gdb, os

LIBRARIES = ("libportent_runtime", "libtsan", "libclang_rt.tsan", "libc.so", "libc-", "libpthread", "libstdc++", "libgcc_s", "libm.so", "ld-linux")


def portent_is_own(frame):
    """Whether a frame is the program's own: neither in a library of the system nor in a header of one."""
    library = os.path.basename(gdb.solib_name(frame.pc()) or "")
    if library.startswith(LIBRARIES) or not frame.find_sal().symtab:
        return False
    return not frame.find_sal().symtab.fullname().startswith(("/usr/include/", "/usr/lib/", "/rustc/"))


def portent_show():
    """Selects the innermost frame that is the program's own."""
    frame = gdb.newest_frame()
    while frame is not None and frame.is_valid():
        if portent_is_own(frame):
            frame.select()
            return
        frame = frame.older()


def portent_leave():
    """`next` and `step` go on from the frame that is selected, not inside of what a library does for it."""
    inner = gdb.selected_frame().newer()
    if inner is not None:
        inner.select()
        gdb.execute("finish", to_string=True)


for portent_command in ("next", "step"):
    gdb.execute("define hook-%s\npython portent_leave()\nend" % portent_command, to_string=True)


def portent_run():
    for command in ("set startup-with-shell off", "set breakpoint pending on", "handle SIGTRAP stop print nopass", "break portent_stop"):
        gdb.execute(command, to_string=True)
    stop = gdb.breakpoints()[-1]
    said = gdb.execute("run", to_string=True)
    try:
        if gdb.selected_inferior().pid and gdb.newest_frame().name() == "portent_stop":
            place = int(gdb.newest_frame().read_register("rdi"))
            stop.delete()
            gdb.execute("tbreak *%d thread %d" % (place, gdb.selected_thread().num), to_string=True)
            gdb.execute("continue")
            if gdb.selected_inferior().pid:
                portent_show()
            return
        stop.delete()
        if not gdb.selected_inferior().pid:
            print(said, end="")
            return
        # The frame's own language, that of the runtime, has no such expressions.
        gdb.execute("set language c", to_string=True)
        shown = int(gdb.parse_and_eval("*(unsigned int *)&portent_shown"))
        gdb.execute("set language auto", to_string=True)
        for thread in gdb.selected_inferior().threads():
            if shown and thread.ptid[1] == shown:
                thread.switch()
        if shown:
            print("portent: these threads cannot go on; one of them waits here")
        else:
            print("portent: stopped by signal %d" % int(gdb.parse_and_eval("$_siginfo.si_signo")))
        portent_show()
        gdb.execute("frame")
    except gdb.error as problem:
        print("portent: %s" % problem)
