/**
 * The seccomp filter of sandboxes: a small BPF program that refuses system calls that no worker
 * needs and that have been used to escape from sandboxes. All other calls are allowed.
 *
 * Invariants:
 * F1. The program first checks the architecture. A call of another architecture, such as a 32-bit
 *     call on a 64-bit kernel, ends the process, because its number denotes another call.
 * F2. Refused calls fail with EPERM. `clone3` fails with ENOSYS, because a filter cannot read its
 *     flags. C libraries then use `clone`.
 */

/**
 * Numbers of system calls: those that are refused, by name, and those that are refused only for
 * some arguments.
 */
interface Table {
  /** Architecture of `struct seccomp_data` (`AUDIT_ARCH_…`). */
  readonly architecture: number
  readonly refused: Readonly<Record<string, number>>
  readonly clone: number
  readonly clone3: number
  readonly ioctl: number
  /** Calls with this number or a higher one belong to another architecture (x32). */
  readonly foreign?: number
}
/** Calls that have the same number on all architectures. */
const newer = {
  io_uring_setup: 425,
  io_uring_enter: 426,
  io_uring_register: 427,
  open_tree: 428,
  move_mount: 429,
  fsopen: 430,
  fsconfig: 431,
  fsmount: 432,
  fspick: 433,
  pidfd_getfd: 438,
  mount_setattr: 442,
  quotactl_fd: 443,
} as const

const tables: Readonly<Partial<Record<string, Table>>> = {
  x64: {
    architecture: 0xc000003e,
    clone: 56,
    clone3: 435,
    ioctl: 16,
    foreign: 0x40000000,
    refused: {
      ...newer,
      ptrace: 101,
      syslog: 103,
      uselib: 134,
      modify_ldt: 154,
      pivot_root: 155,
      chroot: 161,
      acct: 163,
      settimeofday: 164,
      mount: 165,
      umount2: 166,
      swapon: 167,
      swapoff: 168,
      reboot: 169,
      sethostname: 170,
      setdomainname: 171,
      iopl: 172,
      ioperm: 173,
      init_module: 175,
      delete_module: 176,
      quotactl: 179,
      clock_settime: 227,
      kexec_load: 246,
      add_key: 248,
      request_key: 249,
      keyctl: 250,
      unshare: 272,
      perf_event_open: 298,
      fanotify_init: 300,
      open_by_handle_at: 304,
      clock_adjtime: 305,
      setns: 308,
      process_vm_readv: 310,
      process_vm_writev: 311,
      kcmp: 312,
      finit_module: 313,
      kexec_file_load: 320,
      bpf: 321,
      userfaultfd: 323,
    },
  },
  arm64: {
    architecture: 0xc00000b7,
    clone: 220,
    clone3: 435,
    ioctl: 29,
    refused: {
      ...newer,
      umount2: 39,
      mount: 40,
      pivot_root: 41,
      chroot: 51,
      quotactl: 60,
      acct: 89,
      unshare: 97,
      kexec_load: 104,
      init_module: 105,
      delete_module: 106,
      clock_settime: 112,
      syslog: 116,
      ptrace: 117,
      reboot: 142,
      sethostname: 161,
      setdomainname: 162,
      settimeofday: 170,
      add_key: 217,
      request_key: 218,
      keyctl: 219,
      swapon: 224,
      swapoff: 225,
      perf_event_open: 241,
      fanotify_init: 262,
      open_by_handle_at: 265,
      clock_adjtime: 266,
      setns: 268,
      process_vm_readv: 270,
      process_vm_writev: 271,
      kcmp: 272,
      finit_module: 273,
      bpf: 280,
      userfaultfd: 282,
      kexec_file_load: 294,
    },
  },
}

/** The flags `CLONE_NEW…`: mount, cgroup, UTS, IPC, user, PID and network namespaces. */
const NEW_NAMESPACES = 0x7e020000
/** The requests `TIOCSTI` and `TIOCLINUX`, which insert input into a terminal. */
const TERMINAL_INPUT = [0x5412, 0x541c] as const
/** Offsets in `struct seccomp_data`. The architectures are little-endian. */
const at = { number: 0, architecture: 4, argument: (index: number) => 16 + 8 * index } as const
/** Opcodes of classic BPF: `ld [k]`, `jeq k`, `jge k`, `jset k`, `ret k`. */
const op = { load: 0x20, equal: 0x15, atLeast: 0x35, anyBit: 0x45, end: 0x06 } as const
const result = {
  allow: 0x7fff0000,
  kill: 0x80000000,
  /** @param errno number of the error, such as `EPERM`. */
  fail: (errno: number) => 0x00050000 | errno,
} as const
/** Linux error number for an operation that is not permitted. */
const EPERM = 1
/** Linux error number for a system call that does not exist. */
const ENOSYS = 38

/** An instruction: its code, the relative jumps on true and on false, and its operand. */
type Instruction = readonly [code: number, yes: number, no: number, operand: number]

function instructionsOf(table: Table): readonly Instruction[] {
  /** Returns instructions that end the program with `value` if the comparison is true. */
  const endIf = (code: number, operand: number, value: number): Instruction[] => [
    [code, 0, 1, operand],
    [op.end, 0, 0, value],
  ]
  /**
   * Returns instructions that apply `checks` to one system call, and allow it if no check ends the
   * program. The checks may load other words of `struct seccomp_data`.
   */
  const forCall = (number: number, checks: readonly Instruction[]): Instruction[] => [
    [op.equal, 0, checks.length + 1, number],
    ...checks,
    [op.end, 0, 0, result.allow],
  ]
  return [
    [op.load, 0, 0, at.architecture],
    [op.equal, 1, 0, table.architecture],
    [op.end, 0, 0, result.kill],
    [op.load, 0, 0, at.number],
    ...(table.foreign === undefined ? [] : endIf(op.atLeast, table.foreign, result.kill)),
    ...Object.values(table.refused).flatMap((number) =>
      endIf(op.equal, number, result.fail(EPERM)),
    ),
    ...endIf(op.equal, table.clone3, result.fail(ENOSYS)),
    ...forCall(table.clone, [
      [op.load, 0, 0, at.argument(0)],
      ...endIf(op.anyBit, NEW_NAMESPACES, result.fail(EPERM)),
    ]),
    ...forCall(table.ioctl, [
      [op.load, 0, 0, at.argument(1)],
      ...TERMINAL_INPUT.flatMap((request) => endIf(op.equal, request, result.fail(EPERM))),
    ]),
    [op.end, 0, 0, result.allow],
  ]
}

/** Returns the names and numbers of the system calls that always fail with EPERM. */
export const refusedCalls = (architecture: string): Readonly<Record<string, number>> =>
  tables[architecture]?.refused ?? {}

/**
 * Returns the program as `bwrap --seccomp` reads it: an array of `struct sock_filter`.
 * @param architecture as in `process.arch`.
 * @returns undefined for an architecture without a table.
 */
export function seccompProgram(architecture: string): Buffer | undefined {
  const table = tables[architecture]
  if (!table) return undefined
  const instructions = instructionsOf(table)
  const program = Buffer.alloc(instructions.length * 8)
  for (const [index, [code, yes, no, operand]] of instructions.entries()) {
    const start = index * 8
    program.writeUInt16LE(code, start)
    program.writeUInt8(yes, start + 2)
    program.writeUInt8(no, start + 3)
    program.writeUInt32LE(operand, start + 4)
  }
  return program
}
