/**
 * Follows the runs of a project for a list: listed runs are updated immediately, and the list is
 * reloaded when runs appear or end.
 */
import { type ReadonlySignal, signal } from '@preact/signals'
import { useEffect, useMemo, useRef } from 'preact/hooks'
import { live } from '../../../api/live.ts'

/** The newest status of a run. Times are in ISO 8601. */
export interface RunChange {
  readonly status: string
  readonly at: string
}
/** The changes to runs since the list was loaded. */
export interface RunChanges {
  /** Returns the newest status of a run; undefined if the status has not changed. */
  of(id: string): RunChange | undefined
  /** Increases after changes, at most once per `RENDER_MS`. */
  readonly version: ReadonlySignal<number>
  /** Number of runs that the list does not show yet, at most `MAX_NEWS`. */
  readonly news: ReadonlySignal<number>
  /** Discards the changes. Called after the list has been reloaded. */
  forget(): void
}

/** Maximum number of unseen runs that are counted. It limits the memory that an open list uses. */
export const MAX_NEWS = 1000
/** Minimum time between two renderings of the list. */
const RENDER_MS = 250
/** Minimum time between two reloads of the list. */
const RELOAD_MS = 1000
const done: ReadonlySet<string> = new Set(['completed', 'failed', 'cancelled'])
interface Frame {
  readonly type?: string
  readonly run_id?: string
  readonly timestamp?: string
  readonly data?: { readonly status?: string }
}

/**
 * Follows the changes to runs for a list.
 * @param knows returns whether the list shows a run.
 * @param reloads returns whether the list may be reloaded.
 * @param reload reloads the list; called at most once per second.
 */
export function useRunChanges(
  project: string,
  knows: (id: string) => boolean,
  reloads: () => boolean,
  reload: () => void,
): RunChanges {
  const latest = useRef({ knows, reloads, reload })
  latest.current = { knows, reloads, reload }
  const parts = useMemo(
    () => ({
      changed: new Map<string, RunChange>(),
      unseen: new Set<string>(),
      version: signal(0),
      news: signal(0),
    }),
    [project],
  )
  const { changed, unseen, version, news } = parts
  useEffect(() => {
    let rendering: ReturnType<typeof setTimeout> | undefined
    let reloading: ReturnType<typeof setTimeout> | undefined
    const ask = (): void => {
      reloading ??= setTimeout(() => {
        reloading = undefined
        const { reloads, reload } = latest.current
        if (reloads()) reload()
      }, RELOAD_MS)
    }
    const render = (): void => {
      rendering = undefined
      version.value++
      news.value = unseen.size
    }
    let interrupted = false
    const stop = live().follow(
      { project, topic: 'runs' },
      {
        frame: ({ event, data }) => {
          if (event === 'stream.reset') return ask()
          const { type, run_id, timestamp = '', data: change } = data as Frame
          if (type !== 'run_updated' || run_id === undefined || change?.status === undefined) return
          const { status } = change
          const known = latest.current.knows(run_id)
          if (known) changed.set(run_id, { status, at: timestamp })
          else if (unseen.size < MAX_NEWS) unseen.add(run_id)
          if (!known || done.has(status)) ask()
          rendering ??= setTimeout(render, RENDER_MS)
        },
        state: ({ state }) => {
          if (state === 'live' && interrupted) ask()
          interrupted = state === 'waiting'
        },
      },
    )
    return () => {
      stop()
      clearTimeout(rendering)
      clearTimeout(reloading)
    }
  }, [parts])
  return {
    of: (id) => changed.get(id),
    version,
    news,
    forget: () => {
      changed.clear()
      unseen.clear()
      news.value = 0
    },
  }
}
