/**
 * Callers are judged again while their streams are open, and before an answer that was waited for is sent: a caller that would
 * not be admitted any more gets no record.
 */
import { errors, isRefusal, type Refusal } from '../protocol/errors.ts'
import { authorize, enter } from './auth/authorize.ts'
import { operationOf, type Call, type Edge } from './call.ts'
import { ownAgent, isSelfAccess } from './sessions/self-access.ts'
import { sessionReferenceOf } from './sessions/visibility.ts'
import { andThen, type MaybePromise } from './maybe-promise.ts'

/** The longest that a timer takes, in milliseconds. */
const MAX_TIMER_MS = 2_147_483_647

/** Why the caller of a request that was admitted would not be any more: signed in, let into the project, allowed to. */
export async function admitted(edge: Edge, call: Call): Promise<Refusal | undefined> {
  const { world, directory, authentication, sight } = edge
  const { project, row, slots } = call
  const caller = await authentication.again(call.caller)
  if (isRefusal(caller)) return caller
  const known = await directory.organization()
  if (isRefusal(known)) return known
  const place = project && enter(caller, known, project.id, slots['id'] !== undefined)
  if (place && isRefusal(place)) return place
  const refused = authorize(
    world.settings.brand,
    row.shape.permission,
    caller,
    slots['action_name'],
  )
  if (
    refused &&
    !(isSelfAccess(operationOf(call), caller) && (await ownAgent(edge, { ...call, caller })))
  )
    return refused
  const of = project && sessionReferenceOf(slots, operationOf(call))
  return of && sight.check(project.id, of, caller)
}

/**
 * What is answered after a wait: the reply, or the refusal of a caller that lost its key or its right meanwhile. Judging costs
 * nothing while no configuration has changed, because the caller is then the same object.
 */
export const judged = <T>(edge: Edge, call: Call, reply: T): MaybePromise<T | Refusal> =>
  andThen(edge.authentication.again(call.caller), (now) =>
    now === call.caller ? reply : admitted(edge, call).then((refused) => refused ?? reply),
  )

/** Ends a stream when its caller would not be admitted any more: at once, after every change of configuration, when its key expires, and with `look`. */
export function guardOf(
  edge: Edge,
  call: Call,
  end: () => void,
): { look(): Promise<void>; stop(): void } {
  const { world, directory, authentication } = edge
  const { caller, project } = call
  const look = async () => {
    const refused = await admitted(edge, call).catch(() => undefined)
    if (refused && errors[refused.refused].status < 500) end()
  }
  const forget = directory.onChange((id) => {
    if (id === undefined || id === project?.id || id === world.organization()) void look()
  })
  const expiry = authentication.expiryOf(caller)
  const cancel =
    expiry === undefined
      ? () => {}
      : world.later(
          Math.min(Math.max(expiry - world.now(), 0) + 1, MAX_TIMER_MS),
          () => void look(),
        )
  const stop = () => {
    forget()
    cancel()
  }
  // What changed while the stream was being opened was heard by nobody.
  void look()
  return { look, stop }
}
