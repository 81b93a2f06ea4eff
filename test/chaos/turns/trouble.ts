/**
 * Kills processes. The times of the kills depend on progress: each kill occurs after a certain
 * share of the tool calls, so it interrupts turns on slow and on fast machines. The roles are
 * chosen in round-robin order, and the process of a role at random. If there are more kills than
 * roles, each kill waits until the processes killed before it have returned.
 */
import type { Dice } from '../../simulation/faults/dice.ts'
import type { Strike } from './history.ts'
import { type Member, type Role, roles } from './stack.ts'

interface Options {
  readonly members: readonly Member[]
  readonly dice: Dice
  readonly now: () => number
  /** Completed tool executions as a share of the expected calls. Repeats are included. */
  readonly progress: () => number
  readonly count: number
  /** Whether to perform no more kills. Processes that were killed before are still restarted. */
  readonly enough: () => boolean
  readonly say: (line: string) => void
}
/** The minimum and maximum time until a killed process returns, in milliseconds. */
const AWAY = [100, 1500] as const
/**
 * The probability that a process of another role is killed at the same time, if there are more
 * kills than roles.
 */
const DOUBLE = 0.15

/**
 * Performs up to `count` kills, some of which affect two processes of different roles
 * simultaneously, and appends each killed process to `strikes`. `enough` ends the loop early.
 * @throws {Error} when a process does not return.
 */
export async function strikeTurns(
  { members, dice, now, progress, count, enough, say }: Options,
  strikes: Strike[],
): Promise<void> {
  const pause = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms))
  const first = dice.below(roles.length)
  const pick = (role: Role): Member | undefined =>
    dice.pick(members.filter((one) => one.role === role))
  async function strike(one: Member | undefined): Promise<void> {
    if (!one) return
    strikes.push({ at: now(), what: `${one.name} killed` })
    say(
      `${(now() / 1000).toFixed(1).padStart(6)} s  ! ${one.name} killed, ` +
        `${Math.round(progress() * 100)} % of the tools are done`,
    )
    await one.kill()
    await pause(dice.between(...AWAY))
    await one.start()
  }
  const few = count <= roles.length
  const under: Promise<unknown>[] = []
  for (let i = 0; i < count; i++) {
    const due = 0.05 + (0.85 * (i + dice.unit() * 0.5)) / count
    while (progress() < due && !enough()) await pause(10)
    if (enough()) break
    const role = roles[(first + i) % roles.length] as Role
    const two = dice.chance(DOUBLE) && !few
    under.push(
      strike(pick(role)),
      ...(two ? [strike(pick(roles[(first + i + 1) % roles.length] as Role))] : []),
    )
    if (!few) await Promise.all(under.splice(0))
  }
  await Promise.all(under)
}
