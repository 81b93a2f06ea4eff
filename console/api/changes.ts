/**
 * Tells queries which records of a project have changed, from the topic `changes` of the shared
 * stream. One subscription per project serves all queries.
 */
import type { LiveChanges } from '../live/live.ts'
import { live } from './live.ts'

type Listener = (kind: string, id: string | undefined) => void

const projects = new Map<string, { readonly listeners: Set<Listener>; readonly stop: () => void }>()

/**
 * Calls the listener for every changed record of a project. The kind `*` means that changes may
 * have been missed, so everything must be loaded again. Without an id, any record of the kind may
 * have changed.
 * @returns a function that ends the calls.
 */
export function onChange(project: string, listener: Listener): () => void {
  let known = projects.get(project)
  if (!known) {
    const listeners = new Set<Listener>()
    const stop = live().follow(
      { project, topic: 'changes' },
      {
        frame: ({ data }) => {
          for (const { kind, id } of (data as LiveChanges).changes)
            for (const one of [...listeners]) one(kind, id)
        },
      },
    )
    known = { listeners, stop }
    projects.set(project, known)
  }
  const { listeners, stop } = known
  listeners.add(listener)
  return () => {
    listeners.delete(listener)
    if (listeners.size > 0) return
    stop()
    projects.delete(project)
  }
}
