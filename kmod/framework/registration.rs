// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! One registration of a program with the helper device, and the quota that it is charged to
//! (INV-52).
//!
//! The image is copied once and checked afterwards, so what was checked is what is kept. The check
//! covers what any DOF of a program has: a header of a known kind, and sections that lie within the
//! image. The library interprets the rest, in user space.
//!
//! Each user has a quota, and all users together have one, because a user who may make user
//! namespaces has many user IDs.

use super::user;
use crate::sys::privilege;
use dtrace_uapi::dof::{self, Hdr, Sec, SecType};
use dtrace_uapi::ioctl::{
    Registered, REGISTERED_ALL_MAX, REGISTERED_MAX, REGISTERED_USER_MAX, REGISTRATIONS_MAX,
};
use dtrace_uapi::limits::MODNAMELEN;
use kernel::alloc::flags::GFP_KERNEL_ACCOUNT;
use kernel::alloc::KVVec;
use kernel::prelude::*;
use kernel::rbtree::{RBTree, RBTreeNode};
use kernel::sync::{new_spinlock, Arc, SpinLock};
use zerocopy::FromBytes;

/// Maximum number of sections of an image.
const SECTIONS_MAX: u32 = 4096;
/// Size that a registration is charged in addition to its image, bytes.
const HEAD: usize = 1024;

/// The sizes that users have registered.
#[pin_data]
pub struct Charges {
    #[pin]
    sums: SpinLock<Sums>,
}

struct Sums {
    of: RBTree<u32, usize>,
    all: usize,
}

impl Charges {
    /// Nothing is registered.
    pub fn new() -> Result<Arc<Self>> {
        let sums = Sums {
            of: RBTree::new(),
            all: 0,
        };
        let this = pin_init!(Self {
            sums <- new_spinlock!(sums, "dtrace::Charges"),
        });
        Arc::pin_init(this, GFP_KERNEL)
    }

    /// Charges the current user. `ENOSPC` if a quota is exceeded. May sleep.
    fn charge(self: &Arc<Self>, size: usize) -> Result<Charge> {
        let user = privilege::user();
        let node = RBTreeNode::new(user, 0, GFP_KERNEL_ACCOUNT)?;
        let mut unused = None;
        let mut sums = self.sums.lock();
        let old = sums.of.get(&user).copied();
        let new = old.unwrap_or(0).checked_add(size);
        let new = new.filter(|new| *new <= REGISTERED_USER_MAX);
        let all = sums.all.checked_add(size);
        let all = all.filter(|all| *all <= REGISTERED_ALL_MAX);
        if let (Some(new), Some(all)) = (new, all) {
            if old.is_none() {
                unused = sums.of.insert(node);
            }
            if let Some(sum) = sums.of.get_mut(&user) {
                *sum = new;
            }
            sums.all = all;
        }
        drop(sums);
        drop(unused);
        new.and(all).ok_or(ENOSPC)?;
        Ok(Charge {
            charges: self.clone(),
            user,
            size,
        })
    }
}

/// A charge. Dropping it gives it back.
struct Charge {
    charges: Arc<Charges>,
    user: u32,
    size: usize,
}

impl Drop for Charge {
    fn drop(&mut self) {
        let mut sums = self.charges.sums.lock();
        let mut gone = None;
        sums.all = sums.all.saturating_sub(self.size);
        if let Some(sum) = sums.of.get_mut(&self.user) {
            *sum = sum.saturating_sub(self.size);
            if *sum == 0 {
                gone = sums.of.remove_node(&self.user);
            }
        }
        drop(sums);
        drop(gone);
    }
}

/// Something that a program has registered. Must be dropped where sleeping is allowed, because that
/// may free vmalloc memory.
pub struct Registration {
    module: [u8; MODNAMELEN],
    addr: u64,
    /// Address of its image in the program.
    from: u64,
    image: KVVec<u8>,
    providers: usize,
    _charge: Charge,
}

impl Registration {
    /// Reads what the current program registers: DOF at the address `from`, for an object at
    /// `addr`. `EINVAL`: it is no DOF of a program; `E2BIG`: it is too large; `ENOSPC`: a quota is
    /// exceeded; `EFAULT`: it cannot be read ([`user::fetch_bytes`]).
    pub fn read(
        charges: &Arc<Charges>,
        module: [u8; MODNAMELEN],
        [addr, from]: [u64; 2],
    ) -> Result<Self> {
        let header: Hdr = user::fetch(from)?;
        if !header.ident.starts_with(&dof::MAGIC) || header.loadsz < size_of::<Hdr>() as u64 {
            return Err(EINVAL);
        }
        let size = usize::try_from(header.loadsz).map_err(|_| E2BIG)?;
        if size > REGISTERED_MAX {
            return Err(E2BIG);
        }
        let charge = charges.charge(size.saturating_add(HEAD))?;
        let mut image = KVVec::from_elem(0u8, size, GFP_KERNEL_ACCOUNT)?;
        user::fetch_bytes(from, &mut image)?;
        let providers = check(&image).ok_or(EINVAL)?;
        if providers > REGISTRATIONS_MAX {
            return Err(E2BIG);
        }
        Ok(Self {
            module,
            addr,
            from,
            image,
            providers,
            _charge: charge,
        })
    }

    /// Makes a registration without an image, for a file mapped at `addr` that has probes.
    pub fn look_at(charges: &Arc<Charges>, addr: u64) -> Result<Self> {
        Ok(Self {
            module: [0; MODNAMELEN],
            addr,
            from: 0,
            image: KVVec::new(),
            providers: 0,
            _charge: charges.charge(HEAD)?,
        })
    }

    /// Whether `other` registers the same again.
    pub fn is(&self, other: &Self) -> bool {
        (self.addr, self.from, self.module) == (other.addr, other.from, other.module)
            && self.image[..] == other.image[..]
    }

    /// Returns the number of providers in the image.
    pub fn providers(&self) -> usize {
        self.providers
    }

    /// Returns the image; empty if the file contains everything.
    pub fn image(&self) -> &[u8] {
        &self.image
    }

    /// Fills in the description for consumers. `number` is the number that it has in its process.
    pub fn put(&self, out: &mut Registered, number: u32) {
        out.generation = number;
        out.addr = self.addr;
        out.size = self.image.len() as u64;
        out.module = self.module;
    }
}

/// Returns the number of providers in an image; `None` if it is no DOF of a program.
fn check(image: &[u8]) -> Option<usize> {
    let (header, _) = Hdr::read_from_prefix(image).ok()?;
    let mut providers = 0usize;
    let mut at = usize::try_from(header.secoff).ok()?;
    if !is_header(&header, image.len()) {
        return None;
    }
    for _ in 0..header.secnum {
        let (sec, _) = Sec::read_from_prefix(image.get(at..)?).ok()?;
        let end = sec.offset.checked_add(sec.size);
        // Sections that are not loaded may lie behind the end.
        let is_within = end.is_some_and(|end| end <= image.len() as u64);
        if sec.flags & dof::SECF_LOAD != 0 && !is_within {
            return None;
        }
        if sec.ty == SecType::Provider as u32 {
            providers = providers.saturating_add(1);
        }
        at = at.checked_add(header.secsize as usize)?;
    }
    Some(providers).filter(|providers| *providers > 0)
}

fn is_header(header: &Hdr, size: usize) -> bool {
    let ident = &header.ident;
    let model = ident[dof::ID_MODEL];
    let version = ident[dof::ID_VERSION];
    ident.starts_with(&dof::MAGIC)
        && matches!(model, dof::MODEL_ILP32 | dof::MODEL_LP64)
        && ident[dof::ID_ENCODING] == dof::ENCODE_LSB
        && (dof::VERSION_1..=dof::VERSION_3).contains(&version)
        && ident.iter().skip(dof::ID_PAD).all(|byte| *byte == 0)
        && header.flags == 0
        && header.secsize as usize >= size_of::<Sec>()
        && header.secnum <= SECTIONS_MAX
        // The program may have changed the header between the two reads.
        && header.loadsz == size as u64
}
