/**
 * Telling followers what was committed. Best effort: gaps are theirs to detect. Who follows one actor gets its entries; who
 * follows a whole project only hears how far it has come, once for each commit, and asks a view: an entry for each of its
 * actors would be sent to every gateway, and read there for nothing.
 */
import {
  feedKinds,
  followedKinds,
  lastCursor,
  type Entry,
  type Kind,
  type Placed,
} from '../../protocol/entry.ts'
import { subjects } from '../../protocol/subjects.ts'
import { LARGE, stripped } from './codec.ts'
import type { Bus } from './ports.ts'

const followed: ReadonlySet<Kind> = new Set(followedKinds)
const fed: ReadonlySet<Kind> = new Set(feedKinds)

/** Tell of the entries of one commit, in their order. @param batch the entries as they were stored, and the JSON of each. */
export function announce(
  bus: Bus,
  placed: readonly Placed[],
  { entries, parts }: { readonly entries: readonly Entry[]; readonly parts: readonly string[] },
): void {
  const reached = new Map<string, number>()
  placed.forEach((one, i) => {
    const { cursor, entry } = one
    const part = parts[i] ?? ''
    if (fed.has(entry.kind)) reached.set(entry.project, lastCursor(one))
    if (!followed.has(entry.kind)) return
    const subject = subjects.live(entry.project, entry.kind, entry.id)
    if (part.length > LARGE) bus.publish(subject, stripped(one))
    else
      bus.publish(
        subject,
        one,
        entry === entries[i] ? () => `{"cursor":${cursor},"entry":${part}}` : undefined,
      )
  })
  for (const [project, cursor] of reached) bus.publish(subjects.moved(project), { cursor })
}
