/**
 * Strikes by progress instead of time: each comes when so many tools have been done, so that they lie in the middle of the turns
 * on a fast machine as on a slow one. Each role in its turn, the process by dice; the next strike waits until the last one is undone,
 * unless each role is struck once at most: then enough of all of them is left.
 */
import type { Dice } from '../../simulation/faults/dice.ts'
import type { Strike } from './history.ts'
import { roles, type Member, type Role } from './stack.ts'

interface Options {
  readonly members: readonly Member[]
  readonly dice: Dice
  readonly now: () => number
  /** Share of the tools that have been done, 0..1. */
  readonly progress: () => number
  readonly count: number
  /** Nothing more is struck; what was struck still comes back. */
  readonly enough: () => boolean
  readonly say: (line: string) => void
}
/** Milliseconds for which a killed process stays away. */
const AWAY = [100, 1500] as const
/** How often a process of another role is killed with it. */
const DOUBLE = 0.15

/** Strike so many times. Fills `strikes` as it goes. @throws Error when something does not come back. */
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
      `${(now() / 1000).toFixed(1).padStart(6)} s  ! ${one.name} killed, ${Math.round(progress() * 100)} % of the tools are done`,
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
