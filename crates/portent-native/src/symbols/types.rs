//! Types of variables, as far as names need them: what lies where inside an object, and which integers have a sign.
//!
//! Pointers are not followed, so a type contains only smaller ones.

/// What the bytes of a variable stand for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Meaning {
    /// A number without a sign, or nothing that is known.
    #[default]
    Bits,
    /// An integer with a sign.
    Signed,
    /// An address.
    Pointer,
}

/// A type, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TypeId(pub(super) u32);

#[derive(Clone, Debug)]
pub(super) struct Type {
    pub(super) size: u64,
    pub(super) name: Option<String>,
    pub(super) shape: Shape,
}

#[derive(Clone, Debug)]
pub(super) enum Shape {
    /// Numbers, pointers, and what is not looked into.
    Scalar(Meaning),
    Array {
        element: TypeId,
    },
    /// Structures, unions and classes; a base class is a member without a name.
    Record(Vec<Member>),
    /// Another name, or a qualifier.
    Alias(TypeId),
}

#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) name: String,
    pub(super) offset: u64,
    pub(super) ty: TypeId,
}

/// All types of a module that its variables need.
#[derive(Debug, Default)]
pub(super) struct Types {
    all: Vec<Type>,
}

/// What part of a variable some bytes are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// Members and indices on the way, such as `[2].balance`.
    pub(super) path: String,
    /// Where in that part the bytes begin.
    pub(super) offset: u64,
    /// What the bytes stand for, if they are the whole of it.
    pub(super) meaning: Meaning,
}

/// No type is nested deeper than this; a file that says otherwise is not believed.
const DEPTH: u32 = 64;

impl Types {
    pub(super) fn add(&mut self, ty: Type) -> TypeId {
        self.all.push(ty);
        TypeId(self.all.len() as u32 - 1)
    }
    pub(super) fn set(&mut self, id: TypeId, ty: Type) {
        self.all[id.0 as usize] = ty;
    }
    pub(super) fn get(&self, id: TypeId) -> &Type {
        &self.all[id.0 as usize]
    }

    /// The type behind names and qualifiers.
    fn plain(&self, mut id: TypeId) -> &Type {
        for _ in 0..DEPTH {
            match self.get(id).shape {
                Shape::Alias(next) => id = next,
                _ => break,
            }
        }
        self.get(id)
    }

    /// Whether nothing inside a type has a name for its users.
    fn is_closed(&self, mut id: TypeId) -> bool {
        for _ in 0..DEPTH {
            let Type { name, shape, .. } = self.get(id);
            // Those of Rust hold what they protect.
            if name.as_deref().is_some_and(|name| synchronises(name) && !name.contains('<')) {
                return true;
            }
            let Shape::Alias(next) = shape else { break };
            id = *next;
        }
        false
    }

    /// The smallest part of an object of type `id` that holds `len` bytes from `offset` on.
    pub(super) fn part(&self, id: TypeId, offset: u64, len: u64) -> Part {
        self.part_at(id, offset, len, DEPTH).0
    }

    /// The part, and whether the bytes are exactly it. A class that stands for one number has no members worth naming.
    fn part_at(&self, id: TypeId, offset: u64, len: u64, depth: u32) -> (Part, bool) {
        let (mut part, exact) = self.member_at(id, offset, len, depth);
        if self.plain(id).name.as_deref().is_some_and(is_atomic) && exact {
            part.path.clear();
        }
        (part, exact)
    }

    fn member_at(&self, id: TypeId, offset: u64, len: u64, depth: u32) -> (Part, bool) {
        let ty = self.plain(id);
        let exact = offset == 0 && len == ty.size;
        let here = |meaning| (Part { path: String::new(), offset, meaning }, exact);
        if depth == 0 || self.is_closed(id) {
            return here(Meaning::Bits);
        }
        match &ty.shape {
            Shape::Scalar(meaning) => here(if exact { *meaning } else { Meaning::Bits }),
            Shape::Array { element } => {
                let stride = self.get(*element).size;
                if stride == 0 || offset >= ty.size || offset % stride + len > stride {
                    return here(Meaning::Bits);
                }
                let (part, exact) = self.part_at(*element, offset % stride, len, depth - 1);
                (Part { path: format!("[{}]{}", offset / stride, part.path), ..part }, exact)
            }
            Shape::Record(members) => {
                let holds = |member: &&Member| {
                    let inside = offset.checked_sub(member.offset);
                    inside.is_some_and(|inside| inside + len <= self.get(member.ty).size)
                };
                // What Rust says of how something may be accessed is no part of it.
                let is_cell = ty.name.as_deref().is_some_and(|name| name.starts_with("UnsafeCell<"));
                let mut best: Option<(Part, bool)> = None;
                // Members of a union all hold the bytes: one that is exactly them names them best.
                for member in members.iter().filter(holds) {
                    let (part, exact) = self.part_at(member.ty, offset - member.offset, len, depth - 1);
                    if best.as_ref().is_none_or(|(_, was_exact)| exact && !was_exact) {
                        let step = if is_cell { String::new() } else { member.step() };
                        best = Some((Part { path: format!("{step}{}", part.path), ..part }, exact));
                    }
                }
                best.unwrap_or_else(|| here(Meaning::Bits))
            }
            Shape::Alias(_) => here(Meaning::Bits),
        }
    }

    /// The lock, condition or the like that begins at `offset`: the outermost part of a type made for that, else the
    /// outermost part that begins there.
    pub(super) fn object(&self, id: TypeId, offset: u64) -> Option<String> {
        let mut begins = None;
        self.object_at(id, offset, String::new(), &mut begins, DEPTH).or(begins)
    }

    fn object_at(
        &self,
        id: TypeId,
        offset: u64,
        path: String,
        begins: &mut Option<String>,
        depth: u32,
    ) -> Option<String> {
        if depth == 0 {
            return None;
        }
        let ty = self.get(id);
        if offset == 0 {
            if ty.name.as_deref().is_some_and(synchronises) {
                return Some(path);
            }
            begins.get_or_insert_with(|| path.clone());
        }
        match &ty.shape {
            Shape::Scalar(_) => None,
            Shape::Alias(next) => self.object_at(*next, offset, path, begins, depth - 1),
            Shape::Array { element } => {
                let stride = self.get(*element).size;
                if stride == 0 || offset >= ty.size {
                    return None;
                }
                let path = format!("{path}[{}]", offset / stride);
                self.object_at(*element, offset % stride, path, begins, depth - 1)
            }
            Shape::Record(members) => members.iter().find_map(|member| {
                let inside = offset.checked_sub(member.offset)?;
                if inside >= self.get(member.ty).size {
                    return None;
                }
                let path = format!("{path}{}", member.step());
                self.object_at(member.ty, inside, path, begins, depth - 1)
            }),
        }
    }
}

/// Whether a class wraps one number that is accessed atomically.
impl Member {
    /// What a path gains by it. The elements of a `std::array` are those of the array, as they are in the source.
    fn step(&self) -> String {
        match self.name.as_str() {
            "" | "_M_elems" | "__elems_" => String::new(),
            name => format!(".{name}"),
        }
    }
}

fn is_atomic(name: &str) -> bool {
    let of_rust = name.strip_prefix("Atomic").is_some_and(|kind| kind.starts_with(['B', 'I', 'P', 'U']));
    of_rust || ["atomic<", "__atomic_base<", "atomic_flag"].iter().any(|start| name.starts_with(start))
}

/// Whether a type is one that programs synchronise with: what is inside it is nobody's business.
fn synchronises(name: &str) -> bool {
    const NAMES: [&str; 17] = [
        "sem_t",
        "mtx_t",
        "cnd_t",
        "once_flag",
        "mutex",
        "recursive_mutex",
        "timed_mutex",
        "recursive_timed_mutex",
        "shared_mutex",
        "shared_timed_mutex",
        "condition_variable",
        "condition_variable_any",
        "binary_semaphore",
        "latch",
        "Condvar",
        "Once",
        "Barrier",
    ];
    const GENERIC: [&str; 6] = ["pthread_", "counting_semaphore<", "barrier<", "Mutex<", "RwLock<", "OnceLock<"];
    NAMES.contains(&name) || GENERIC.iter().any(|start| name.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(types: &mut Types, size: u64, signed: bool) -> TypeId {
        let meaning = if signed { Meaning::Signed } else { Meaning::Bits };
        types.add(Type { size, name: None, shape: Shape::Scalar(meaning) })
    }
    fn member(name: &str, offset: u64, ty: TypeId) -> Member {
        Member { name: name.into(), offset, ty }
    }

    /// `struct { int balance; union { long id; char text[8]; }; pthread_mutex_t lock; } accounts[3]`
    fn accounts() -> (Types, TypeId) {
        let mut types = Types::default();
        let (int, long, byte) =
            (number(&mut types, 4, true), number(&mut types, 8, false), number(&mut types, 1, true));
        let text = types.add(Type { size: 8, name: None, shape: Shape::Array { element: byte } });
        let members = vec![member("id", 0, long), member("text", 0, text)];
        let union = types.add(Type { size: 8, name: None, shape: Shape::Record(members) });
        let inside = types.add(Type { size: 40, name: None, shape: Shape::Record(vec![member("__lock", 0, int)]) });
        let name = Some("pthread_mutex_t".to_owned());
        let mutex = types.add(Type { size: 40, name, shape: Shape::Alias(inside) });
        let members = vec![member("balance", 0, int), member("", 8, union), member("lock", 16, mutex)];
        let account = types.add(Type { size: 56, name: Some("account".into()), shape: Shape::Record(members) });
        let array = types.add(Type { size: 3 * 56, name: None, shape: Shape::Array { element: account } });
        (types, array)
    }

    #[test]
    fn bytes_are_named_after_the_smallest_part_that_holds_them() {
        let (types, accounts) = accounts();
        let path = |offset, len| {
            let part = types.part(accounts, offset, len);
            (part.path, part.offset, part.meaning == Meaning::Signed)
        };
        assert_eq!(path(112, 4), ("[2].balance".into(), 0, true));
        assert_eq!(path(113, 1), ("[2].balance".into(), 1, false));
        assert_eq!(path(64, 8), ("[1].id".into(), 0, false));
        assert_eq!(path(66, 1), ("[1].text[2]".into(), 0, true));
        assert_eq!(path(56, 56), ("[1]".into(), 0, false));
        assert_eq!(path(50, 20), (String::new(), 50, false));
        assert_eq!(path(1000, 4), (String::new(), 1000, false));
        assert_eq!(path(56 + 16, 1), ("[1].lock".into(), 0, false), "what is inside a lock is nobody's business");
    }

    #[test]
    fn locks_are_named_after_themselves_not_after_what_is_inside() {
        let (types, accounts) = accounts();
        assert_eq!(types.object(accounts, 56 + 16).as_deref(), Some("[1].lock"));
        assert_eq!(types.object(accounts, 56).as_deref(), Some("[1]"));
        assert_eq!(types.object(accounts, 0).as_deref(), Some(""));
        assert_eq!(types.object(accounts, 57), None);
    }
}
