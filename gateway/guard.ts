/**
 * Checks the admission of a request again: while its stream is open or its file is sent, after its
 * upload, and before a response that required a wait. A caller that would no longer be admitted
 * receives no further data. The first admission is in `admission.ts`.
 */
import { isRefusal, isServiceFault, type Refusal } from '../protocol/errors.ts'
import type { Caller } from './auth/authenticate.ts'
import { authorizeRow, enterProject } from './auth/authorize.ts'
import { type Call, type Edge, factsOf } from './call.ts'
import { andThen, type MaybePromise } from './maybe-promise.ts'
import { isSelfAccess, ownAgent } from './sessions/self-access.ts'
import { sessionReferenceOf } from './sessions/visibility.ts'

/** The maximum delay of a Node.js timer, in milliseconds. */
const MAX_TIMER_MS = 2_147_483_647
/** Minimum time between two checks that an expiry causes, in milliseconds. */
const AGAIN_MS = 1000

/**
 * Checks authentication, permission, and access to the project and the session again. Returns the
 * refusal, or undefined when the request would still be admitted.
 */
export async function recheckAdmission(edge: Edge, call: Call): Promise<Refusal | undefined> {
  const { world, directory, authentication, sessionVisibility } = edge
  const { project, row, slots } = call
  const caller = await authentication.again(call.caller)
  if (isRefusal(caller)) return caller
  const known = await directory.organization()
  if (isRefusal(known)) return known
  const ofRun = factsOf(call).locateBy === 'run'
  const entered = project && enterProject(caller, known, project.id, ofRun)
  if (entered && isRefusal(entered)) return entered
  const refused = authorizeRow(world.settings.brand, row.shape, caller, slots)
  if (
    refused &&
    !(isSelfAccess(factsOf(call), caller) && (await ownAgent(edge, { ...call, caller })))
  )
    return refused
  const of = project && sessionReferenceOf(slots, factsOf(call))
  return of && sessionVisibility.check(project.id, of, caller)
}

/**
 * Returns the reply after a wait, or a refusal if the caller has lost its key or its permission in
 * the meantime. The check is cheap while no configuration has changed, because authentication then
 * returns the same caller object.
 */
export const ifStillAdmitted = <T>(edge: Edge, call: Call, reply: T): MaybePromise<T | Refusal> =>
  andThen(edge.authentication.again(call.caller), (now) =>
    now === call.caller ? reply : recheckAdmission(edge, call).then((refused) => refused ?? reply),
  )

/**
 * Calls `look` when a caller may have lost access: at the start, after each change to the project's
 * or the organization's configuration, and when the key expires or the console session would end.
 * An expiry that is more than `MAX_TIMER_MS` away is checked after this time instead.
 * @param project id of the caller's project, if any.
 * @returns a function that ends the watch.
 */
export function watchAccess(
  { world, directory, authentication }: Pick<Edge, 'world' | 'directory' | 'authentication'>,
  caller: Caller,
  project: string | undefined,
  look: () => Promise<void>,
): () => void {
  const forget = directory.onChange((id) => {
    if (id === undefined || id === project || id === world.organization()) void look()
  })
  let cancel = () => {}
  let stopped = false
  // If a console session was used in the meantime, it ends later than the timer assumed, so the
  // timer is set again after each check.
  const arm = (soonest: number) => {
    const ends = authentication.endOf(caller)
    if (ends === undefined || stopped) return
    const delay = Math.max(ends - world.now() + 1, soonest)
    cancel = world.later(Math.min(delay, MAX_TIMER_MS), () => {
      void look().then(() => arm(AGAIN_MS))
    })
  }
  arm(1)
  // Detects a change made before the listener was registered.
  void look()
  return () => {
    stopped = true
    forget()
    cancel()
  }
}

/**
 * Watches the admission of an open stream. Calls `end` with the refusal when a check finds that the
 * caller would be refused with a status below 500. The caller is checked when it may have lost
 * access (`watchAccess`), and on each call to `look`.
 */
export function guardOf(
  edge: Edge,
  call: Call,
  end: (refused: Refusal) => void,
): { look(): Promise<void>; stop(): void } {
  const look = async () => {
    const refused = await recheckAdmission(edge, call).catch(() => undefined)
    if (refused && !isServiceFault(refused)) end(refused)
  }
  return { look, stop: watchAccess(edge, call.caller, call.project?.id, look) }
}

/**
 * Yields the bytes of a response while its caller is admitted, and throws when the caller has lost
 * its access. The watch begins after the first chunk, so a short response is not watched.
 */
export async function* whileAdmitted(
  edge: Edge,
  call: Call,
  chunks: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array, void> {
  let lost: Refusal | undefined
  let guard: ReturnType<typeof guardOf> | undefined
  try {
    for await (const chunk of chunks) {
      if (lost) throw new Error(`the caller lost its access: ${lost.refused}`)
      yield chunk
      guard ??= guardOf(edge, call, (refused) => {
        lost = refused
      })
    }
  } finally {
    guard?.stop()
  }
}
