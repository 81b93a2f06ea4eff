/**
 * The network of a chaos run, and cuts of its links. With sufficient rights, each process has its
 * own network namespace on a bridge inside an isolated namespace, and a cut link drops packets
 * silently. Without these rights, all processes are on loopback, and no link can be cut.
 */
import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process'
import { promisify } from 'node:util'

/**
 * The network location of one process: its address, and the command prefix that starts a program
 * there.
 */
export interface Place {
  readonly host: string
  readonly before: readonly string[]
}
export interface Net {
  /** Whether links can be cut. */
  readonly cuts: boolean
  /** Creates the location of the process with this name, or returns the existing one. */
  place(name: string): Promise<Place>
  /** Cuts a process off from all others. */
  isolate(name: string): Promise<void>
  /** Cuts the link between two processes. */
  part(one: string, other: string): Promise<void>
  /** Undoes all cuts. */
  heal(): Promise<void>
  close(): void
}

const run = promisify(execFile)
/**
 * Returns the command prefix that runs a program in its own network, process and mount namespaces.
 * The namespaces end with the program.
 */
export const namespaces = (): string[] => [
  'unshare',
  ...(process.getuid?.() === 0 ? [] : ['-r']),
  '-n',
  '-p',
  '-f',
  '--mount-proc',
  '--kill-child=SIGKILL',
]

/** Returns the reason why links cannot be cut on this machine, or undefined if they can be cut. */
export function whyNoCuts(): string | undefined {
  if (process.platform !== 'linux') return 'network namespaces are a thing of Linux'
  const [command = '', ...args] = namespaces()
  const trial =
    'ip link add name b type bridge && ip link add name v type veth peer name w && ' +
    'ip link set dev v master b && nsenter --net=/proc/self/ns/net true'
  const tried = spawnSync(command, [...args, 'sh', '-c', trial], {
    encoding: 'utf8',
    timeout: 10_000,
  })
  if (tried.error) return `${command}: ${tried.error.message}`
  return tried.status === 0
    ? undefined
    : (tried.stderr.trim().split('\n')[0] ?? `${command} ended with ${tried.status}`)
}

export const loopback = (): Net => ({
  cuts: false,
  place: async () => ({ host: '127.0.0.1', before: [] }),
  isolate: async () => {},
  part: async () => {},
  heal: async () => {},
  close: () => {},
})

/**
 * The prefix of the addresses, which exist only inside the namespace. RFC 2544 reserves the prefix
 * for benchmarks.
 */
const NET = '198.18.0'
const NOBODY = '02:00:00:00:00:01'

/**
 * Gives each process its own network namespace, connected to a bridge. The calling process must
 * have been started with the command prefix that `namespaces()` returns.
 */
export async function bridged(): Promise<Net> {
  const ip = (...args: string[]) => run('ip', args)
  await ip('link', 'set', 'lo', 'up')
  await ip('link', 'add', 'hub', 'type', 'bridge')
  await ip('addr', 'add', `${NET}.1/24`, 'dev', 'hub')
  await ip('link', 'set', 'hub', 'up')
  const places = new Map<
    string,
    {
      readonly host: string
      readonly cable: string
      readonly enter: readonly string[]
      readonly holder: ChildProcess
    }
  >()
  const undo: (() => Promise<unknown>)[] = []
  const at = (name: string) => {
    const place = places.get(name)
    if (!place) throw new Error(`there is no place called ${name}`)
    return place
  }
  const inside = async (name: string, ...args: string[]) => {
    const [command = '', ...rest] = [...at(name).enter, 'ip', ...args]
    await run(command, rest)
  }
  return {
    cuts: true,
    place: async (name) => {
      const known = places.get(name)
      if (known) return { host: known.host, before: known.enter }
      const number = places.size + 2
      const holder = spawn('unshare', ['-n', 'sh', '-c', 'echo ready; exec sleep 100000'], {
        stdio: ['ignore', 'pipe', 'ignore'],
      })
      const enter = ['nsenter', `--net=/proc/${holder.pid}/ns/net`]
      const place = { host: `${NET}.${number}`, cable: `cable${number}`, enter, holder }
      places.set(name, place)
      await new Promise((ready, failed) => {
        holder.stdout?.once('data', ready)
        holder.once('exit', failed)
      })
      await ip(
        'link',
        'add',
        place.cable,
        'type',
        'veth',
        'peer',
        'name',
        'eth0',
        'netns',
        String(holder.pid),
      )
      await ip('link', 'set', place.cable, 'master', 'hub')
      await ip('link', 'set', place.cable, 'up')
      await inside(name, 'link', 'set', 'lo', 'up')
      await inside(name, 'addr', 'add', `${place.host}/24`, 'dev', 'eth0')
      await inside(name, 'link', 'set', 'eth0', 'up')
      return { host: place.host, before: enter }
    },
    isolate: async (name) => {
      const { cable } = at(name)
      await ip('link', 'set', cable, 'nomaster')
      undo.push(() => ip('link', 'set', cable, 'master', 'hub'))
    },
    part: async (one, other) => {
      // Each of the two processes sends its packets for the other process to an unused hardware
      // address, so the packets are lost.
      for (const [from, to] of [
        [one, at(other).host],
        [other, at(one).host],
      ] as const) {
        await inside(
          from,
          'neigh',
          'replace',
          to,
          'lladdr',
          NOBODY,
          'dev',
          'eth0',
          'nud',
          'permanent',
        )
        undo.push(() => inside(from, 'neigh', 'del', to, 'dev', 'eth0'))
      }
    },
    heal: async () => {
      for (const again of undo.splice(0)) await again()
    },
    close: () => {
      for (const { holder } of places.values()) holder.kill('SIGKILL')
    },
  }
}
