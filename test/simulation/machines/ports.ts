/**
 * The servers as seen by a machine. Every call travels to the servers and takes effect, and the
 * answer travels back. Each of these steps may fail.
 */
import type { Appended, Journal, Registry, Snapshots, Stored } from '../../../nodes/host/ports.ts'
import type { Machine } from './machine.ts'

/** Milliseconds until a call without an answer times out. */
const TIMEOUT_MS = 1000
/**
 * Maximum delay of an operation of the state stream, in milliseconds, including the delay by slow
 * operations before it. Without a maximum, the stream would not come to rest soon after the faults
 * end.
 */
const MAX_BACKLOG_MS = 5000
const never = <T>(): Promise<T> => new Promise<T>(() => {})

interface Way {
  /** The message that is lost, if any. */
  readonly lost?: 'request' | 'answer'
  /** Milliseconds that the operation takes in addition to the travel time. */
  readonly slow?: number
}
/**
 * Performs one call; `act` is its effect on the servers. If no answer arrives in time, the call
 * returns `missed`, or rejects if `missed` is absent.
 */
function call<T>(machine: Machine, way: Way, act: () => T, missed?: T): Promise<T> {
  if (!machine.spend()) return never()
  const { timeline, weather } = machine.sim
  return new Promise((resolve, reject) => {
    const cancel = machine.clock.later(TIMEOUT_MS, () =>
      missed === undefined ? reject(new Error('the servers do not answer')) : resolve(missed),
    )
    if (machine.cut || way.lost === 'request') return
    // All requests use one connection, so they arrive in the order in which they were sent.
    const arrival = Math.max(timeline.now + weather.travel(), machine.arrived)
    machine.arrived = arrival
    timeline.after(arrival - timeline.now + (way.slow ?? 0), () => {
      const outcome = act()
      if (machine.cut || way.lost === 'answer') return
      timeline.after(weather.travel(), () =>
        machine.enter(() => {
          cancel()
          resolve(outcome)
        }),
      )
    })
  })
}

/** Returns a description of an envelope's content, for a trace. */
function stored({ name, sim: { journal } }: Machine, sequence: number): string {
  const message = journal.messages[sequence - 1]
  if (!message) return `${sequence} is missing`
  const { epoch, entries } = journal.envelope(message)
  const lines = entries.map(
    ({ kind, id, command, events }) =>
      `\n             ${kind} ${id} ${command.name} ${command.id}: ${events.map(({ type }) => type).join(' ')}`,
  )
  return (
    `${name} writes ${sequence} of shard ${message.shard}, ` +
    `epoch ${epoch}${entries.length === 0 ? ': fence' : ''}${lines.join('')}`
  )
}

export function journalPort(machine: Machine): Journal {
  const { sim } = machine
  const { weather, timeline, journal } = sim
  const port: Journal = {
    append: (_, shard, data, expected, id) => {
      const store = (): Appended => {
        const outcome = sim.plant?.append
          ? sim.plant.append(journal, shard, data, expected, id, timeline.now)
          : journal.append(shard, data, expected, id, timeline.now)
        sim.note(() =>
          typeof outcome === 'object'
            ? stored(machine, outcome.sequence)
            : `the journal refuses ${id}: expected ${expected}`,
        )
        return outcome
      }
      if (weather.strikes('late', 0.02)) {
        if (!machine.spend()) return never()
        const dice = weather.dice('late')
        const wait = dice.between(0, 3000)
        sim.note(
          () => `${machine.name}: append ${id} is stored ${Math.round(wait)} ms after its timeout`,
        )
        timeline.after(TIMEOUT_MS + wait, store)
        return new Promise(
          (resolve) => void machine.clock.later(TIMEOUT_MS, () => resolve('unknown')),
        )
      }
      const lost = weather.strikes('append', 0.04)
        ? weather.dice('append').chance(0.5)
          ? 'request'
          : 'answer'
        : undefined
      if (lost) sim.note(() => `${machine.name}: the ${lost} of append ${id} is lost`)
      return call<Appended>(
        machine,
        { slow: weather.sync(), ...(lost && { lost }) },
        store,
        'unknown',
      )
    },
    last: (_, shard) =>
      call<{ found: Stored | undefined }>(
        machine,
        weather.strikes('append', 0.03) ? { lost: 'answer' } : {},
        () => ({ found: journal.last(shard) }),
      ).then(({ found }) => found),
    at: (_, sequence) =>
      call<{ found: Stored | undefined }>(
        machine,
        weather.strikes('append', 0.03) ? { lost: 'answer' } : {},
        () => ({ found: journal.messages[sequence - 1] }),
      ).then(({ found }) => found),
    read: async function* (_, shard, from) {
      const all = await call(machine, {}, () =>
        journal.messages.filter((message) => message.shard === shard && message.sequence >= from),
      )
      for (const [i, message] of all.entries()) {
        if (i > 0 && i % 16 === 0) await call(machine, {}, () => true)
        yield message
      }
    },
    position: () => call(machine, {}, () => ({ first: 1, last: journal.messages.length })),
    follow: () => {
      throw new Error('nothing follows the journal here')
    },
  }
  return port
}

export function statePort(machine: Machine): Snapshots {
  const { weather, state, timeline } = machine.sim
  let idle = 0
  /**
   * Returns the delay and the fault of the next operation. The stream performs one operation at a
   * time, so a slow operation delays later ones.
   */
  const way = (): Way => {
    idle = Math.max(idle, timeline.now)
    if (!weather.strikes('state', 0.08)) return { slow: idle - timeline.now }
    const dice = weather.dice('state')
    if (dice.chance(0.5))
      idle = Math.max(idle, Math.min(idle + dice.between(100, 3000), timeline.now + MAX_BACKLOG_MS))
    return dice.chance(0.5)
      ? { slow: idle - timeline.now }
      : { slow: idle - timeline.now, lost: dice.chance(0.5) ? 'request' : 'answer' }
  }
  return {
    get: (_, key) =>
      call(machine, way(), () => ({ found: state.get(key) })).then(({ found }) => found),
    put: (_, key, data, revision) =>
      call(machine, way(), () => ({ made: state.put(key, data, revision) })).then(
        ({ made }) => made,
      ),
    delete: async (_, key) => {
      await call(machine, way(), () => ({ done: state.delete(key) }))
    },
  }
}

export function registryPort(machine: Machine): Registry {
  const { weather, registry } = machine.sim
  const way = (): Way => {
    if (!weather.strikes('registry', 0.04)) return {}
    const dice = weather.dice('registry')
    return dice.chance(0.5)
      ? { slow: dice.between(50, 900) }
      : { lost: dice.chance(0.5) ? 'request' : 'answer' }
  }
  return {
    get: (key) =>
      call(machine, way(), () => ({ found: registry.get(key) })).then(({ found }) => found),
    put: (key, value, revision) =>
      call(machine, way(), () => ({ made: registry.put(key, value, revision) })).then(
        ({ made }) => made,
      ),
    delete: async (key) => {
      await call(machine, way(), () => ({ done: registry.delete(key) }))
    },
    list: (prefix) => call(machine, way(), () => registry.list(prefix)),
  }
}
