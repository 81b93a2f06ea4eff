/**
 * The hold of a blueprint, which serializes its changes: a second request waits until the first has
 * ended. A hold is renewed while its request runs, and expires when its gateway dies.
 */
import { HOLD_MS } from '../../protocol/blueprints/events.ts'
import type { Identity } from '../../protocol/blueprints/stored.ts'
import type { Origin } from '../../protocol/entry.ts'
import { isRefusal, type Refusal, refuse } from '../../protocol/errors.ts'
import type { Edge } from '../call.ts'
import { hexOf } from '../http/hex.ts'
import { sendNew } from '../http/send.ts'
import type { Prepared } from '../prepare.ts'
import { sleep } from '../timing.ts'

/** Maximum number of milliseconds to wait for another holder. */
const MAX_WAIT_MS = 45_000
/** Milliseconds between two attempts to acquire the hold. */
const PAUSE_MS = 100

export interface Hold {
  /** Id of the blueprint's actor. */
  readonly id: string
  readonly holder: string
  /** Whether the hold may have been lost, because a renewal was refused or is overdue. */
  isLost(): boolean
  /**
   * Reserves ids for new resources, keyed by resource type and key (`placeOf`). Returns the ids to
   * use, which may result from earlier reservations.
   * @param replace keys of `ids` whose earlier reservations are replaced.
   */
  reserve(
    ids: Readonly<Record<string, string>>,
    replace?: readonly string[],
  ): Promise<Readonly<Record<string, string>> | Refusal>
  /**
   * Stops the renewal, and waits for a renewal in flight, which could otherwise acquire the hold
   * again. The final command of the request releases the hold.
   */
  stop(): Promise<void>
  /** Releases the hold without a final command. */
  release(): Promise<void>
}

/** Returns the id of a blueprint's actor, which is derived from the project and the identity. */
export const blueprintId = (
  { world }: Pick<Edge, 'world'>,
  project: string,
  { namespace = '', blueprint_key = '' }: Identity,
): string => world.id('blueprint', `${project}/${namespace}\n${blueprint_key}`)

/**
 * Acquires the hold of a blueprint. While another request has the hold, waits for at most
 * `MAX_WAIT_MS`, and then returns `blueprint_busy`.
 */
export async function takeHold(
  { world }: Pick<Edge, 'world'>,
  project: string,
  identity: Identity,
  origin: Origin,
): Promise<Hold | Refusal> {
  const id = blueprintId({ world }, project, identity)
  const holder = hexOf(world.random(16))
  const to = { project, kind: 'blueprint', id } as const
  const hold = () => sendNew(world, to, 'blueprint.hold', { holder, ...identity }, origin)
  const until = world.monotonic() + MAX_WAIT_MS
  let held_until = 0
  for (;;) {
    const sent_at = world.monotonic()
    const outcome = await hold()
    if (!isRefusal(outcome)) {
      held_until = sent_at + HOLD_MS
      break
    }
    if (outcome.refused !== 'blueprint_busy' || world.monotonic() >= until) return outcome
    await sleep(world, PAUSE_MS)
  }
  let stopped = false
  let renewal = Promise.resolve()
  let cancel = () => {}
  const renew = async (): Promise<void> => {
    const sent_at = world.monotonic()
    const outcome = await hold()
    if (!isRefusal(outcome)) held_until = sent_at + HOLD_MS
    else if (outcome.refused === 'blueprint_busy') held_until = 0
    if (held_until > 0 && !stopped) schedule()
  }
  const schedule = (): void => {
    cancel = world.later(HOLD_MS / 3, () => {
      renewal = renew()
    })
  }
  schedule()
  const isLost = (): boolean => world.monotonic() >= held_until
  const stop = async (): Promise<void> => {
    stopped = true
    cancel()
    await renewal
  }
  return {
    id,
    holder,
    isLost,
    async reserve(ids, replace = []) {
      const input = { holder, ids, replace }
      const outcome = await sendNew(world, to, 'blueprint.reserve', input, origin)
      if (isRefusal(outcome)) return outcome
      return isLost() ? refuse('blueprint_busy', { retry_after: 1 }) : outcome.reply.ids
    },
    stop,
    async release() {
      await stop()
      await sendNew(world, to, 'blueprint.release', { holder }, origin)
    },
  }
}

/**
 * Prepares a command while the blueprint is held. The command ends the hold. If the preparation is
 * refused, fails or needs no command, the hold is released immediately.
 */
export async function prepareWhileHeld(
  edge: Pick<Edge, 'world'>,
  project: string,
  identity: Identity,
  origin: Origin,
  run: (hold: Hold) => Promise<Prepared | Refusal>,
): Promise<Prepared | Refusal> {
  const hold = await takeHold(edge, project, identity, origin)
  if (isRefusal(hold)) return hold
  try {
    const prepared = await run(hold)
    if (isRefusal(prepared) || prepared.done !== undefined) await hold.release()
    else await hold.stop()
    return prepared
  } catch (error) {
    await hold.release()
    throw error
  }
}
