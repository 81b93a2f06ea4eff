/** A host with a provider in memory, scripted replies from environments, and a manual clock. */
import { startHost } from '../../../nodes/hosts/host.ts'
import type { HostRequest, HostTask } from '../../../protocol/environments/commands.ts'
import { makeId } from '../../../protocol/ids.ts'
import { subjects } from '../../../protocol/subjects.ts'
import { fakeWorld } from '../../support/fake-world.ts'
import { ManualClock, MemoryBus, settleAll, silentLog } from '../../support/memory.ts'
import { MemoryPlace } from '../../support/memory-provider.ts'

export const PROJECT = 'prj_1'
export const envId = (n: number) => makeId('environment', n, new Uint8Array(9).fill(n), n)
export const E1 = envId(1)

interface Sent {
  readonly id: string
  readonly name: string
  readonly input: Record<string, unknown>
  readonly command_id: string
}
type Reply = (sent: Sent) => unknown

/** Creates one bus and one clock for several hosts, which run in succession or concurrently. */
export function stage(place = new MemoryPlace()) {
  const clock = new ManualClock()
  const bus = new MemoryBus()
  const sent: Sent[] = []
  const warned: string[] = []
  const tasks = new Map<string, HostTask>()
  const on: Record<string, Reply> = {
    'environment.claim': ({ id }) => ({ reply: tasks.get(id) }),
    'environment.progress': () => ({ reply: { current: true } }),
    'environment.report': () => ({ reply: undefined }),
    'environment.seen': () => ({ reply: { expected: true } }),
    'environment.exited': () => ({ reply: undefined }),
  }
  const start = (node = 'n1', limits = { environments: 10, operations: 2 }) => {
    let random = 0
    const world = fakeWorld({
      node,
      now: clock.now,
      monotonic: clock.elapsed,
      later: clock.later,
      random: (bytes: number) => new Uint8Array(bytes).fill(++random),
      newCommandId: () => `command-${++random}`,
      hash: (text: string) => `hash(${text})`,
      log: { ...silentLog, warn: ({ event }: { event: string }) => void warned.push(event) },
      command: async ({ id, name, input, command_id }: Sent) => {
        const one = { id, name, input, command_id }
        sent.push(one)
        return on[name]?.(one)
      },
    })
    return startHost({
      world,
      bus,
      providers: [place.provider()],
      limits,
      launch: { brand: 'Acme', gateway_url: 'http://gateway', log_level: 'info' },
      credential: ({ environment_id }, bytes) => `bat_${environment_id}_${bytes[0]}`,
      project: async () => ({ handle: 'default', repository_hosts: {} }),
    })
  }
  const request = async (
    id: string,
    kind: HostRequest['kind'],
    operation = 1,
    where: 'provider' | 'place' = kind === 'provision' ? 'provider' : 'place',
    more: Partial<HostTask> = {},
  ) => {
    const message: HostRequest = { project: PROJECT, environment_id: id, operation, kind }
    tasks.set(id, {
      ...message,
      name: 'one',
      provider: 'memory',
      repositories: [],
      ...(kind === 'start' && { worker: { generation: operation } }),
      ...more,
    })
    bus.publish(
      where === 'place' ? subjects.hostsAt(place.name) : subjects.hostsOf('memory'),
      message,
    )
    await settleAll()
  }
  const names = () => sent.map(({ name }) => name.slice('environment.'.length))
  const inputs = (name: string) => sent.filter((one) => one.name === name).map((one) => one.input)
  return { clock, bus, sent, warned, on, start, request, names, inputs, place }
}
