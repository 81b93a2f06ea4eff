/**
 * The ports of a node that dies at its n-th step. Each call to a port, such as an append, a read or
 * a request, consists of two steps: one before and one after it takes effect. Subscriptions and
 * messages without an answer are not steps.
 */
import type { HostDeps } from '../../../nodes/host/deps.ts'

class Crash extends Error {}

/**
 * Wraps the ports of a node. They work until step `at`, or forever if `at` is 0. After that step,
 * no call by the node has an effect.
 */
export function mortal(
  deps: HostDeps,
  at: number,
): { deps: HostDeps; steps: () => number; dead: () => boolean } {
  let steps = 0
  /** Functions that end the node's subscriptions. All of them are called when the node dies. */
  const listening: (() => void)[] = []
  let bury = (): void => {}
  const buried = new Promise<undefined>((done) => {
    bury = () => done(undefined)
  })
  const step = () => {
    if (at === 0) steps++
    else if (++steps >= at) {
      for (const stop of listening.splice(0)) stop()
      bury()
      throw new Crash()
    }
  }
  const dead = () => at > 0 && steps >= at
  const wrap = <T extends object>(port: T): T =>
    new Proxy(port, {
      get: (target, name) => {
        const value = Reflect.get(target, name, target)
        if (typeof value !== 'function') return value
        return (...args: unknown[]) => {
          if (name === 'hears' || name === 'wants') return value.apply(target, args)
          if (name === 'here') return dead() ? undefined : value.apply(target, args)
          if (name === 'publish') return dead() ? () => {} : value.apply(target, args)
          if (name === 'subscribe') {
            if (dead()) return () => {}
            const [subject, handler, ...rest] = args as [
              string,
              (message: unknown, subject: string) => unknown,
              ...unknown[],
            ]
            const stop = value.call(
              target,
              subject,
              (message: unknown, to: string) => Promise.race([handler(message, to), buried]),
              ...rest,
            ) as () => void
            listening.push(stop)
            return stop
          }
          if (name === 'read')
            return (async function* () {
              step()
              yield* value.apply(target, args) as AsyncIterable<unknown>
              step()
            })()
          return (async () => {
            step()
            const result = await value.apply(target, args)
            step()
            return result
          })()
        }
      },
    })
  const clock: HostDeps['clock'] = {
    now: deps.clock.now,
    elapsed: deps.clock.elapsed,
    later: (ms, run) =>
      dead()
        ? () => {}
        : deps.clock.later(ms, () => {
            if (!dead()) run()
          }),
  }
  return {
    deps: {
      ...deps,
      journal: wrap(deps.journal),
      snapshots: wrap(deps.snapshots),
      blobs: wrap(deps.blobs),
      bus: wrap(deps.bus),
      clock,
    },
    steps: () => steps,
    dead,
  }
}
