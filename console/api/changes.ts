/**
 * Notifies queries when records of a project change. The changes come from the topics `changes` and
 * `runs` of the shared stream. All queries share one subscription per project and topic.
 */
import type { LiveChanges, LiveFrame } from '../live/live.ts'
import { live } from './live.ts'

type Listener = (kind: string, id: string | undefined) => void
type Source = 'changes' | 'runs'

interface Followed {
  readonly listeners: Set<Listener>
  readonly stop: () => void
}
/** Time for which a subscription without listeners is kept. */
const KEPT_MS = 2000
const followed = new Map<string, Followed>()

/** Calls the listeners for each change in a frame. */
function notify(source: Source, listeners: ReadonlySet<Listener>, { data }: LiveFrame): void {
  const changes =
    source === 'changes'
      ? (data as LiveChanges).changes
      : [{ kind: 'run', id: (data as { run_id?: string } | undefined)?.run_id }]
  for (const { kind, id } of changes) for (const one of [...listeners]) one(kind, id)
}

function follow(source: Source, project: string, listener: Listener): () => void {
  const name = `${source} ${project}`
  let known = followed.get(name)
  if (!known) {
    const listeners = new Set<Listener>()
    const stop = live().follow(
      { project, topic: source },
      {
        frame: (frame) => notify(source, listeners, frame),
        // Changes from before the subscription are not delivered, so everything is reloaded (`*`).
        state: ({ state }) => {
          const kind = { live: '*', refused: 'refused' }[state as string]
          if (kind !== undefined) for (const one of [...listeners]) one(kind, undefined)
        },
      },
    )
    known = { listeners, stop }
    followed.set(name, known)
  }
  const { listeners, stop } = known
  listeners.add(listener)
  return () => {
    listeners.delete(listener)
    if (listeners.size > 0) return
    // The subscription is kept for a while, because the next page of the project often needs it.
    setTimeout(() => {
      if (listeners.size > 0 || followed.get(name) !== known) return
      stop()
      followed.delete(name)
    }, KEPT_MS)
  }
}

/**
 * Calls the listener with the kind and the id of every changed record of a project. Without an id,
 * any record of the kind may have changed. The kind `*` means that changes may have been missed, so
 * everything must be loaded again. The kind `refused` means that the subscription was refused, for
 * example after a permission was revoked.
 * @param of the project, and whether to include its runs, with the kind `run`.
 * @returns a function that removes the listener.
 */
export function onChange(
  { project, runs = false }: { readonly project: string; readonly runs?: boolean },
  listener: Listener,
): () => void {
  const stops = [follow('changes', project, listener)]
  if (runs) stops.push(follow('runs', project, listener))
  return () => {
    for (const stop of stops) stop()
  }
}

/** Ends all subscriptions before the live data of another session is opened. */
export function forgetChanges(): void {
  for (const { stop } of followed.values()) stop()
  followed.clear()
}
