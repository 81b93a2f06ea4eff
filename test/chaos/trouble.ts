/**
 * Injects random faults into processes and links, within the limits that the service is guaranteed
 * to survive. Only one NATS server is affected at a time, and the next fault begins only when all
 * replicas are current again. Two simultaneous faults affect processes of different roles.
 */
import { fork } from '../simulation/faults/dice.ts'
import type { Manner, Strike } from './history.ts'
import type { Net } from './net.ts'
import type { Member, Role, Stack } from './stack.ts'

interface Options {
  readonly stack: Stack
  readonly net: Net
  readonly seed: number
  readonly now: () => number
  /** The time at which all faults are undone, in milliseconds since the load began. */
  readonly until: number
  /** Whether the number of pending requests is normal. */
  readonly calm: () => boolean
  readonly signal: AbortSignal
  readonly say: (line: string) => void
}
const likely: readonly (readonly [Role, number])[] = [
  ['nats', 30],
  ['shards', 22],
  ['gateway', 20],
  ['views', 18],
  ['worker', 8],
  ['executor', 2],
]
/** Milliseconds for which a paused process is stopped. */
const PAUSED_MS = 10_000
/** Minimum and maximum number of milliseconds for which a killed process stays down. */
const DOWN_MS = [200, 3000] as const
/** Minimum and maximum number of milliseconds for which a link is cut. */
const CUT_MS = [3000, 14_000] as const
/** Minimum and maximum number of milliseconds between two faults. */
const BETWEEN_MS = [3000, 6000] as const
/**
 * The next fault is delayed while the backlog of requests from the last one remains, but for at
 * most this many milliseconds. Without the delay, a long waiting time could have two causes.
 */
const MAX_SETTLE_MS = 20_000
type How = 'kill' | 'restart' | 'pause' | 'cut'
/** The roles whose processes can also be shut down gracefully. */
const orderly: ReadonlySet<Role> = new Set(['gateway', 'shards', 'views', 'executor'])
/** The probability of two simultaneous faults. */
const DOUBLE = 0.2
const WHOLE_TIMEOUT_MS = 120_000

/**
 * Injects faults until the time limit, and appends each to `strikes`.
 * @throws {Error} when an affected process does not end cleanly or does not return, or when the
 *   replicas do not become current.
 */
export async function bringTrouble(
  { stack, net, seed, now, until, calm, signal, say }: Options,
  strikes: Strike[],
): Promise<void> {
  const dice = fork(seed, 'trouble')
  const wait = async (ms: number) => {
    for (const end = Math.min(until, now() + ms); now() < end && !signal.aborted; )
      await new Promise((next) => setTimeout(next, 20))
  }
  const pickOf = (role: Role): Member => {
    const all = stack.members.filter((one) => one.role === role)
    return all[dice.below(all.length)] ?? fail(`nobody is ${role}`)
  }
  const role = (): Role => {
    let at = dice.below(likely.reduce((sum, [, weight]) => sum + weight, 0))
    return (likely.find(([, weight]) => (at -= weight) < 0) ?? likely[0] ?? fail('no roles'))[0]
  }
  const manner = (cuttable: boolean): How => {
    const at = dice.unit()
    return at < 0.4 ? 'kill' : at < 0.6 ? 'restart' : at < 0.75 || !cuttable ? 'pause' : 'cut'
  }
  const begin = (kind: Manner, what: string): Strike => {
    const strike: Strike = { at: now(), until: Number.POSITIVE_INFINITY, manner: kind, what }
    strikes.push(strike)
    say(what)
    return strike
  }

  async function kill(one: Member): Promise<void> {
    const away = dice.between(...DOWN_MS)
    const strike = begin(one.role === 'nats' ? 'kill nats' : 'kill', `${one.name} killed`)
    await one.kill()
    await wait(away)
    await startAgain(one)
    strike.until = now()
  }
  async function restart(one: Member): Promise<void> {
    const strike = begin('restart', `${one.name} restarted`)
    await one.end()
    await startAgain(one)
    strike.until = now()
  }
  async function startAgain(one: Member): Promise<void> {
    for (let attempt = 1; !signal.aborted; attempt++) {
      try {
        await one.start()
        break
      } catch (error) {
        if (attempt === 3 || signal.aborted) throw error
        say(`${one.name} did not come up: ${String(error)}`)
      }
    }
  }
  async function pause(one: Member): Promise<void> {
    const strike = begin('pause', `${one.name} paused`)
    one.signal('SIGSTOP')
    await wait(PAUSED_MS)
    one.signal('SIGCONT')
    strike.until = now()
  }
  async function cut(one: Member, alone: boolean): Promise<void> {
    const lasts = dice.between(...CUT_MS)
    const others = stack.members.filter((other) => other.role === 'nats' && other !== one)
    const other =
      one.role === 'worker'
        ? pickOf('gateway')
        : (others[dice.below(others.length)] ?? fail('no NATS server'))
    // A cut link also affects the NATS server at its other end. With a second, simultaneous fault,
    // two servers could be affected, so the member is isolated instead.
    const whole = dice.chance(0.4) || (!alone && other.role === 'nats')
    // Half of the cuts of a NATS server separate it only from its peers. Clients can still reach
    // it, and it still acts as leader.
    const from = one.role === 'nats' && dice.chance(0.5) ? others : [other]
    const strike = begin(
      'cut',
      whole
        ? `${one.name} cut off`
        : `${one.name} cut from ${from.map(({ name }) => name).join(' and ')}`,
    )
    if (whole) await net.isolate(one.name)
    else for (const each of from) await net.part(one.name, each.name)
    await wait(lasts)
    await net.heal()
    strike.until = now()
  }
  const hit = (one: Member, how: How, alone: boolean) =>
    how === 'restart' && orderly.has(one.role)
      ? restart(one)
      : how === 'kill' || how === 'restart'
        ? kill(one)
        : how === 'pause'
          ? pause(one)
          : cut(one, alone)

  await wait(3000)
  while (now() < until - 2000 && !signal.aborted) {
    const first = pickOf(role())
    const how = manner(net.cuts)
    if (dice.chance(DOUBLE)) {
      let second = pickOf(role())
      while (second.role === first.role) second = pickOf(role())
      await Promise.all([
        hit(first, how, false),
        hit(second, manner(net.cuts && how !== 'cut'), false),
      ])
    } else await hit(first, how, true)
    if (signal.aborted) return
    // A lagging replica counts as missing. Another fault before it is current could exceed what the
    // service is guaranteed to survive.
    await stack.whole(WHOLE_TIMEOUT_MS)
    await wait(dice.between(...BETWEEN_MS))
    for (
      const end = Math.min(until, now() + MAX_SETTLE_MS);
      !calm() && now() < end && !signal.aborted;
    )
      await wait(100)
  }
}

function fail(message: string): never {
  throw new Error(message)
}
