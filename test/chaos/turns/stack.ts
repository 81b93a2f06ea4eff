/**
 * The installation for the kill test of turns: one NATS server, and nodes that mostly have one role
 * each. Its members (shard nodes, gateways and executors) can be killed and started again.
 */
import { type Processes, portsFor, processes } from '../../scenarios/support/processes.ts'

export const roles = ['shards', 'gateway', 'executor'] as const
export type Role = (typeof roles)[number]
export interface Member {
  readonly name: string
  readonly role: Role
  kill(): Promise<void>
  start(): Promise<void>
}
export interface TurnStack {
  readonly urls: readonly string[]
  readonly key: string
  readonly members: readonly Member[]
  stop(): Promise<void>
}

const timing = (lease: number): Record<string, string> => ({
  BATON_WORKER_CADENCE: '1s',
  BATON_WORKER_LEASE: `${lease}s`,
  BATON_WORKER_POLL: '1s',
  BATON_WORKER_STALE: `${lease + 1}s`,
  BATON_WORKER_TAKEOVER: `${lease}s`,
  BATON_KEEPALIVE: '3',
})

/**
 * Starts the installation.
 * @param small whether to start as few processes as the roles allow. The second gateway is then
 *   also the view node, and is never killed.
 * @param lease the lease of a job in seconds.
 */
export async function startTurnStack({
  small,
  lease,
}: {
  readonly small: boolean
  readonly lease: number
}): Promise<TurnStack> {
  const it: Processes = await processes(timing(lease))
  const members: Member[] = []
  try {
    const ports = await portsFor(2)
    const member = (name: string, role: Role, port?: number): Member => {
      let lives = 0
      let running: { kill(): Promise<void> } | undefined
      const one: Member = {
        name,
        role,
        kill: async () => {
          await running?.kill()
        },
        // A returning node has its old id or a new one, so both are tested.
        start: async () => {
          running = await it.node(lives % 2 === 0 ? name : `${name}-${lives}`, role, port)
          lives++
        },
      }
      members.push(one)
      return one
    }
    await member('shards-1', 'shards').start()
    const others = [
      member('shards-2', 'shards'),
      member('gateway-1', 'gateway', ports[0]),
      member('executor-1', 'executor'),
      ...(small
        ? []
        : [member('gateway-2', 'gateway', ports[1]), member('executor-2', 'executor')]),
    ]
    await Promise.all([
      ...others.map((one) => one.start()),
      small ? it.node('gateway-2', 'gateway,views', ports[1]) : it.node('views-1', 'views'),
    ])
    return {
      urls: ports.map((port) => `http://127.0.0.1:${port}`),
      key: it.key,
      members,
      stop: () => it.stop(),
    }
  } catch (error) {
    await it.stop()
    throw error
  }
}
