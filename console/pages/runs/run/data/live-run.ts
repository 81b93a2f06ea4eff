/**
 * The data of a run's page: the record, the steps, and the events as they happen. Frames are
 * applied together, at most ten times per second.
 */
import { type ReadonlySignal, type Signal, signal } from '@preact/signals'
import { useEffect, useMemo, useRef } from 'preact/hooks'
import type { Api } from '../../../../../protocol/api.ts'
import type { Reply } from '../../../../../protocol/contract.ts'
import type { RunEventRecord } from '../../../../../protocol/runs/schema.ts'
import { onChange } from '../../../../api/changes.ts'
import { ApiError, call } from '../../../../api/client.ts'
import { live } from '../../../../api/live.ts'
import { type Query, useQuery } from '../../../../api/query.ts'
import type { LiveState } from '../../../../live/live.ts'
import { hasEnded, RunFold } from './fold.ts'

/** The record of a run with its definition and the reason why it waits. */
export type RunDetail = Reply<Api['run.get']>

/** The data of a run's page, updated live. */
export interface LiveRun {
  readonly fold: RunFold
  /** Increases whenever `fold` changes, so that the components that read it are re-rendered. */
  readonly version: ReadonlySignal<number>
  readonly detail: Query<RunDetail>
  /** Whether the records of the steps have been loaded. */
  readonly loaded: ReadonlySignal<boolean>
  readonly error: ReadonlySignal<ApiError | undefined>
  readonly state: ReadonlySignal<LiveState>
  /** Reloads the record and the steps, and follows the events again if their stream had ended. */
  refresh(): void
}

/** Minimum time between two renderings. */
const RENDER_MS = 100
/** Minimum time between two requests for the record. */
const RELOAD_MS = 2000
/**
 * The steps of a run are reloaded after its events only if there are at most this many.
 * Otherwise, they are reloaded only when the run ends, and by `refresh`.
 */
const MAX_RELOADED_STEPS = 300

/**
 * Calls `run` on request, at most once per `periodMs`. `ask` schedules a call unless one is already
 * scheduled. `stop` cancels the scheduled call.
 */
function throttled(run: () => void, periodMs: number) {
  let timer: ReturnType<typeof setTimeout> | undefined
  let before = 0
  return {
    ask(): void {
      if (timer !== undefined) return
      timer = setTimeout(
        () => {
          timer = undefined
          before = performance.now()
          run()
        },
        Math.max(0, before + periodMs - performance.now()),
      )
    },
    stop: () => clearTimeout(timer),
  }
}

/** Loads and follows the data of a run. */
export function useLiveRun(project: string, id: string): LiveRun {
  const detail = useQuery(
    'run.get',
    { project, id },
    {
      // Changes of these kinds can also change the reason why a run waits.
      kinds: ['worker', 'interaction', 'environment'],
    },
  )
  const parts = useMemo(
    () => ({
      fold: new RunFold(),
      version: signal(0),
      loaded: signal(false),
      error: signal<ApiError | undefined>(undefined),
      state: signal<LiveState>('connecting'),
      followed: signal(0),
    }),
    [project, id],
  )
  const reloadDetail = useRef(detail.reload)
  reloadDetail.current = detail.reload
  const { fold, version, loaded, error, state, followed } = parts
  const loadSteps = async (): Promise<void> => {
    try {
      const { items } = await call('run.steps', { id })
      fold.addRecords(items)
      error.value = undefined
      loaded.value = true
      version.value++
    } catch (failure) {
      if (!(failure instanceof ApiError)) throw failure
      error.value = failure
    }
  }
  useEffect(() => void loadSteps(), [parts])
  const round = followed.value
  // The steps are loaded first, because the many events of a large run would delay them.
  const ready = loaded.value || error.value !== undefined
  useEffect(() => {
    if (!ready) return undefined
    const reload = throttled(() => {
      reloadDetail.current()
      if (fold.steps.size <= MAX_RELOADED_STEPS) void loadSteps()
    }, RELOAD_MS)
    const stop = followRun(project, id, fold, version, (next, changed) => {
      if (next !== undefined) state.value = next
      if (next === 'ended') {
        reloadDetail.current()
        void loadSteps()
      } else if (changed) reload.ask()
    })
    return () => {
      reload.stop()
      stop()
    }
  }, [parts, round, ready])
  // A worker's claim of a job is not an event of the run, but the project's topic `runs` reports
  // it. The topic also reports the jobs of other runs, which change the length of the queue. While
  // the run waits for a worker or a lease, it is therefore reloaded after changes to runs of the
  // project.
  const reason = detail.state.value.data?.waiting_on?.kind
  const ofJobs = reason === 'worker' || reason === 'lease'
  useEffect(() => {
    if (!ofJobs) return undefined
    const reload = throttled(() => {
      reloadDetail.current()
      if (fold.steps.size <= MAX_RELOADED_STEPS) void loadSteps()
    }, RELOAD_MS)
    const stop = onChange({ project, runs: true }, (kind) => {
      if (kind === 'run' || kind === '*') reload.ask()
    })
    return () => {
      reload.stop()
      stop()
    }
  }, [parts, ofJobs])
  const ended = state.value === 'ended'
  const refollow = (): void => {
    state.value = 'connecting'
    followed.value++
  }
  // Only a failed run can continue after its end, by a retry.
  const failed = detail.state.value.data?.status === 'failed'
  useEffect(() => {
    if (!ended || !failed) return undefined
    return live().follow(
      { project, topic: 'runs' },
      {
        frame: ({ event, data }) => {
          if (event === 'stream.reset') return reloadDetail.current()
          const { run_id, data: change } = data as { run_id?: string; data?: { status?: string } }
          if (run_id !== id || hasEnded(change?.status ?? 'failed')) return
          reloadDetail.current()
          refollow()
        },
      },
    )
  }, [parts, ended, failed])
  return {
    fold,
    version,
    detail,
    loaded,
    error,
    state,
    refresh: () => {
      detail.reload()
      void loadSteps()
      if (state.peek() === 'ended') refollow()
    },
  }
}

/**
 * Follows the events of a run and adds them to `fold`. `on` receives the state of the stream, or
 * undefined after events were added, and whether the record of the run may have changed.
 */
function followRun(
  project: string,
  id: string,
  fold: RunFold,
  version: Signal<number>,
  on: (state: LiveState | undefined, changed: boolean) => void,
): () => void {
  let waiting: RunEventRecord[] = []
  const began = Date.now()
  const render = throttled(() => {
    const events = waiting
    waiting = []
    fold.addEvents(events)
    version.value++
    // The record that the page loads already includes events from before the page was opened, so
    // these events do not count as changes.
    on(
      undefined,
      events.some(({ created_at }) => Date.parse(created_at) > began - RELOAD_MS),
    )
  }, RENDER_MS)
  const after = fold.events.at(-1)?.sequence
  const stop = live().follow(
    { project, topic: 'run', target: id, ...(after !== undefined && { after }) },
    {
      frame: ({ event, data, cursor }) => {
        if (event === 'stream.reset') {
          waiting = []
          // With a cursor, the timeline is sent again from its start.
          if (cursor !== undefined) fold.clear()
          return on(undefined, true)
        }
        // Frames with partial output of a model have no cursor. Only the page of the session shows
        // them.
        if (cursor === undefined) return
        waiting.push(data as RunEventRecord)
        render.ask()
      },
      state: ({ state }) => {
        // The end is reported after a delay, so that the frames that arrived before it are applied
        // first.
        if (state === 'ended') setTimeout(() => on(state, true), RENDER_MS)
        else on(state, false)
      },
    },
  )
  return () => {
    stop()
    render.stop()
  }
}

/** Returns the status of a run from its record or from its events, whichever is newer. */
export function statusOfRun(detail: RunDetail, fold: RunFold): string {
  const { status, statusAt } = fold
  return status !== undefined && statusAt >= Date.parse(detail.updated_at) ? status : detail.status
}
