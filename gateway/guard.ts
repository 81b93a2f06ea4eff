/** Watching over open streams: nobody goes on reading who would not be admitted any more. */
import { errors, isRefusal, type Refusal } from '../protocol/errors.ts'
import { authorize, enter } from './authorize.ts'
import type { Call, Edge } from './call.ts'
import { namedIn } from './session/sight.ts'

/** The longest that a timer takes, in milliseconds. */
const LONGEST = 2_147_483_647

/** Ends a stream when its caller would not be admitted any more: after every change of configuration, when its key expires, and with `look`. */
export function guardOf({ world, directory, authentication, sight }: Edge, { caller, project, row, slots }: Call, end: () => void): { look(): Promise<void>; stop(): void } {
  const verdict = async (): Promise<Refusal | undefined> => {
    const now = await authentication.again(caller)
    if (isRefusal(now)) return now
    const known = await directory.organization()
    if (isRefusal(known)) return known
    const place = project && enter(now, known, project.id, slots['id'] !== undefined)
    if (place && isRefusal(place)) return place
    const of = project && namedIn(slots)
    return authorize(world.settings.brand, row.shape.permission, now, slots['action_name']) ?? (of && (await sight.check(project.id, of, now)))
  }
  const look = async () => {
    const refused = await verdict().catch(() => undefined)
    if (refused && errors[refused.refused].status < 500) end()
  }
  const forget = directory.onChange((id) => {
    if (id === undefined || id === project?.id || id === world.organization()) void look()
  })
  const expiry = authentication.expiryOf(caller)
  const cancel = expiry === undefined ? () => {} : world.later(Math.min(Math.max(expiry - world.now(), 0) + 1, LONGEST), () => void look())
  const stop = () => {
    forget()
    cancel()
  }
  return { look, stop }
}
