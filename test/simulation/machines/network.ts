/**
 * Messaging between machines, with loss, delay, repetition and reordering if the seed has these
 * faults. Subscribers on the sender's own machine are called directly and before all others, as in
 * a real node.
 */
import type { Bus, NoAnswer } from '../../../nodes/host/ports.ts'
import type { Simulation } from '../simulation.ts'
import type { Machine } from './machine.ts'

interface Listener {
  readonly machine: Machine
  readonly subject: string
  readonly handler: (message: unknown, subject: string) => unknown
  readonly group: string | undefined
}
const fits = (pattern: string, subject: string): boolean => {
  if (pattern === subject) return true
  if (!pattern.includes('*')) return false
  const [a, b] = [pattern.split('.'), subject.split('.')]
  return a.length === b.length && a.every((token, i) => token === '*' || token === b[i])
}
const copy = (message: unknown): unknown =>
  message === undefined ? undefined : JSON.parse(JSON.stringify(message))

export class Network {
  readonly #sim: Simulation
  readonly #listeners = new Set<Listener>()
  /** The subscribers of each subject, cached until a subscription changes. */
  readonly #known = new Map<string, readonly Listener[]>()
  /** The arrival time of the last message on each link, so that links can preserve the order. */
  readonly #arrivals = new Map<string, number>()

  constructor(sim: Simulation) {
    this.#sim = sim
  }
  /** Removes the subscriptions of a machine whose connection the servers consider lost. */
  forget(machine: Machine): void {
    for (const listener of this.#listeners)
      if (listener.machine === machine) this.#listeners.delete(listener)
    this.#known.clear()
  }
  /**
   * Whether the servers report no subscriber for this node. They may have dropped a node that is
   * cut off or does not read, and their answer may be temporarily wrong.
   */
  hasNoSubscriber(machine: Machine, id: string): Promise<boolean> {
    if (!machine.spend()) return new Promise(() => {})
    const { sim } = machine
    return new Promise((resolve) => {
      const cancel = machine.clock.later(300, () => resolve(false))
      if (machine.cut) return
      const lives = sim.machines.filter((other) => other.id === id && other.alive)
      const dropped = lives.every(
        ({ cut, paused }) =>
          (cut && sim.weather.dice('cut').chance(0.5)) ||
          (paused && sim.weather.dice('pause').chance(0.5)),
      )
      const wrong = sim.weather.strikes('loss', 0.1)
      sim.timeline.after(sim.weather.travel(), () =>
        machine.enter(() => {
          cancel()
          resolve(dropped || wrong)
        }),
      )
    })
  }
  /** Returns the bus of a machine. Calls to the bus of a dead machine have no effect. */
  bus(machine: Machine): Bus {
    return {
      subscribe: (subject, handler, group) => {
        const listener: Listener = { machine, subject, handler, group }
        if (machine.alive) this.#listeners.add(listener)
        this.#known.clear()
        return () => {
          this.#listeners.delete(listener)
          this.#known.clear()
        }
      },
      publish: (subject, message) => {
        if (machine.spend()) this.#publish(machine, subject, message)
      },
      request: (subject, message, timeout) =>
        machine.spend() ? this.#request(machine, subject, message, timeout) : new Promise(() => {}),
      // The shards of a machine that is `apart` send their job offers to its gateway as requests.
      here: (subject, message) => {
        if (machine.apart || !machine.alive) return undefined
        for (const listener of this.#matching(subject)) {
          const answer =
            listener.machine === machine ? listener.handler(message, subject) : undefined
          if (answer !== undefined && !(answer instanceof Promise)) return answer
        }
        return undefined
      },
      wants: () => true,
      hears: (topic) => [...this.#listeners].some(({ subject }) => subject.startsWith(`${topic}.`)),
      flush: async () => {},
    }
  }

  #matching(subject: string): readonly Listener[] {
    const known = this.#known.get(subject)
    if (known) return known
    const found = [...this.#listeners].filter((listener) => fits(listener.subject, subject))
    this.#known.set(subject, found)
    return found
  }
  /**
   * Chooses the subscribers on other machines that receive a message: all subscribers without a
   * group, and one member of each group that is not in `served`.
   */
  #elsewhere(
    machine: Machine,
    subject: string,
    served: ReadonlySet<string> = new Set(),
  ): Listener[] {
    const groups = new Map<string, Listener[]>()
    const chosen: Listener[] = []
    for (const listener of this.#matching(subject)) {
      if (listener.machine === machine) continue
      if (listener.group === undefined) chosen.push(listener)
      else if (!served.has(listener.group))
        groups.set(listener.group, [...(groups.get(listener.group) ?? []), listener])
    }
    for (const members of groups.values()) {
      const one = this.#sim.dice.pick(members)
      if (one) chosen.push(one)
    }
    return chosen
  }
  /**
   * Transports a message from one machine to another. It may be lost, arrive late, or arrive twice.
   */
  #carry(from: Machine, to: Machine, deliver: () => void): void {
    const { weather, timeline } = this.#sim
    if (from.cut || to.cut || weather.strikes('loss', 0.05)) return
    const key = `${from.name}>${to.name}`
    const at = timeline.now + weather.travel()
    const arrival = weather.kinds.has('reorder') ? at : Math.max(at, this.#arrivals.get(key) ?? 0)
    this.#arrivals.set(key, arrival)
    timeline.after(arrival - timeline.now, () => to.enter(deliver))
    if (weather.strikes('duplicate', 0.05))
      timeline.after(arrival - timeline.now + weather.dice('duplicate').between(0, 400), () =>
        to.enter(deliver),
      )
  }
  async #call(listener: Listener, message: unknown, subject: string): Promise<unknown> {
    try {
      return await listener.handler(message, subject)
    } catch (error) {
      this.#sim.note(
        () => `${listener.machine.name}: a listener of ${subject} failed: ${String(error)}`,
      )
      return undefined
    }
  }
  #publish(machine: Machine, subject: string, message: unknown): void {
    const here = this.#matching(subject).filter((listener) => listener.machine === machine)
    const served = new Set<string>()
    for (const listener of here) {
      if (listener.group !== undefined && served.has(listener.group)) continue
      if (listener.group !== undefined) served.add(listener.group)
      queueMicrotask(() => machine.enter(() => void this.#call(listener, message, subject)))
    }
    const there = this.#elsewhere(machine, subject, served)
    if (there.length === 0) return
    const sent = copy(message)
    for (const listener of there)
      this.#carry(machine, listener.machine, () => void this.#call(listener, sent, subject))
  }
  async #request(
    machine: Machine,
    subject: string,
    message: unknown,
    timeout: number,
  ): Promise<{ readonly answer: unknown } | NoAnswer> {
    const here = this.#matching(subject).filter((listener) => listener.machine === machine)
    if (here.length > 0) {
      const asked = (async () => {
        for (const listener of here) {
          const answer = await this.#call(listener, message, subject)
          if (answer !== undefined) return { answer }
        }
        return undefined
      })()
      const outcome = await this.#within(machine, timeout, asked)
      if (outcome !== undefined) return outcome
    }
    return this.#ask(machine, subject, copy(message), timeout)
  }
  #within<T>(machine: Machine, timeout: number, asked: Promise<T>): Promise<T | 'timeout'> {
    return new Promise((resolve) => {
      const cancel = machine.clock.later(timeout, () => resolve('timeout'))
      void asked.then((answer) => {
        cancel()
        resolve(answer)
      })
    })
  }
  #ask(
    machine: Machine,
    subject: string,
    message: unknown,
    timeout: number,
  ): Promise<{ readonly answer: unknown } | NoAnswer> {
    return new Promise((resolve) => {
      const there = this.#elsewhere(machine, subject)
      const cancel = machine.clock.later(timeout, () => resolve('timeout'))
      const answered = (answer: { readonly answer: unknown } | NoAnswer) => {
        cancel()
        resolve(answer)
      }
      if (there.length === 0 && !machine.cut)
        this.#sim.timeline.after(this.#sim.weather.travel(), () =>
          machine.enter(() => answered('no_responders')),
        )
      for (const listener of there) {
        this.#carry(machine, listener.machine, () => {
          const others =
            listener.group === undefined
              ? []
              : this.#matching(subject).filter(
                  (other) =>
                    other.machine === listener.machine &&
                    other !== listener &&
                    other.group === listener.group,
                )
          void (async () => {
            for (const one of [listener, ...others]) {
              const answer = copy(await this.#call(one, message, subject))
              if (answer !== undefined)
                return this.#carry(listener.machine, machine, () => answered({ answer }))
            }
            if (listener.group !== undefined)
              this.#carry(listener.machine, machine, () => answered('no_responders'))
          })()
        })
      }
    })
  }
}
