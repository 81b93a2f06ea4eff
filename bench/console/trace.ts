/**
 * Computes the work of a page's main thread in each frame from trace events of Chromium. This file
 * needs no browser.
 *
 * Invariant: the whole duration of an event is attributed to the frame in which the event begins,
 * even if it ends in a later frame.
 */

/** A trace event. Times are in microseconds; `tdur` is the processor time of the thread. */
export interface TraceEvent {
  readonly name: string
  readonly ph: string
  readonly pid: number
  readonly tid: number
  readonly ts: number
  readonly dur?: number
  readonly tdur?: number
}
/** A thread of a process. */
export interface Thread {
  readonly pid: number
  readonly tid: number
}
/** The work of a main thread, in milliseconds. */
export interface Frames {
  /** The start time of each frame in microseconds. */
  readonly begins: readonly number[]
  /**
   * Scripts in each frame, including the layout that they force and the garbage collection during
   * their execution.
   */
  readonly script: readonly number[]
  /**
   * Processor time of the scripts in each frame. It excludes the time during which the thread was
   * preempted.
   */
  readonly processor: readonly number[]
  /** The processor time of each garbage collection, during scripts and between them. */
  readonly collections: readonly number[]
  /** Style, layout and paint in each frame, except those that scripts force. */
  readonly rendering: readonly number[]
  /** The durations of the tasks that took more than `LONG` ms. */
  readonly longTasks: readonly number[]
  /** The number of tasks that took more than `LONG` ms of processor time. */
  readonly busyTasks: number
}

/** Duration in milliseconds above which browsers consider a task long. */
export const LONG = 50
/** Duration of a frame in microseconds, at 60 frames per second. */
const FRAME = 1e6 / 60

/** The event at the start of a frame on the main thread. */
const BEGIN = 'BeginMainThreadFrame'
const TASK = 'RunTask'
const scripts: ReadonlySet<string> = new Set([
  'EvaluateScript',
  'EventDispatch',
  'FireAnimationFrame',
  'FireIdleCallback',
  'FunctionCall',
  'RunMicrotasks',
  'TimerFire',
  'v8.callFunction',
  'v8.compile',
  'v8.compileModule',
  'v8.evaluateModule',
])
const collections: ReadonlySet<string> = new Set(['MajorGC', 'MinorGC'])
const renderings: ReadonlySet<string> = new Set([
  'Commit',
  'HitTest',
  'IntersectionObserverController::computeIntersections',
  'Layerize',
  'Layout',
  'Paint',
  'PrePaint',
  'ScheduleStyleRecalculation',
  'UpdateLayer',
  'UpdateLayerTree',
  'UpdateLayoutTree',
])
/** Whether `framesOf` or `threadOf` needs an event. */
export const isRelevant = ({ name }: Pick<TraceEvent, 'name'>, mark: string): boolean =>
  [BEGIN, TASK, mark].includes(name) ||
  [scripts, collections, renderings].some((names) => names.has(name))

/**
 * Returns the thread that has set a mark with `performance.mark`.
 * @throws Error if no event has the name of the mark.
 */
export function threadOf(events: readonly TraceEvent[], mark: string): Thread {
  const found = events.find(({ name }) => name === mark)
  if (!found) throw new Error(`the trace has no mark ${mark}`)
  return { pid: found.pid, tid: found.tid }
}

/** A part of a thread's work that no other part contains. */
interface Part {
  readonly name: string
  readonly at: number
  readonly dur: number
  /**
   * Processor time in microseconds, at most `dur`. In a virtual machine, the clock of a thread may
   * run ahead of real time by several milliseconds.
   */
  readonly tdur: number
}
/** Returns the events that no other event of the list contains, sorted by time. */
function outermost(events: readonly TraceEvent[]): Part[] {
  const parts: Part[] = []
  let end = Number.NEGATIVE_INFINITY
  const ordered = events.toSorted((a, b) => a.ts - b.ts || (b.dur ?? 0) - (a.dur ?? 0))
  for (const { name, ts, dur = 0, tdur = dur } of ordered) {
    if (ts < end) continue
    parts.push({ name, at: ts, dur, tdur: Math.min(tdur, dur) })
    end = ts + dur
  }
  return parts
}

/**
 * Returns the start times of the frames. While nothing changes, the browser begins no frames, so a
 * longer gap between two frames is divided into frames of the usual duration.
 */
function beginsOf(events: readonly TraceEvent[]): number[] {
  const known = events
    .filter(({ name }) => name === BEGIN)
    .map(({ ts }) => ts)
    .sort((a, b) => a - b)
  const begins: number[] = []
  for (const [index, at] of known.entries()) {
    const next = known[index + 1] ?? at
    begins.push(at)
    for (let more = at + FRAME; more + FRAME <= next; more += FRAME) begins.push(more)
  }
  return begins
}
/**
 * Returns the sums of the parts that begin in each frame. Parts before the first frame are omitted.
 */
function sums(begins: readonly number[], parts: readonly Part[], of: 'dur' | 'tdur'): number[] {
  const all = new Array<number>(begins.length).fill(0)
  let frame = -1
  for (const part of parts) {
    while (frame + 1 < begins.length && (begins[frame + 1] ?? 0) <= part.at) frame++
    if (frame >= 0) all[frame] = (all[frame] ?? 0) + part[of] / 1000
  }
  return all
}

/** Returns the work of a main thread in each frame. */
export function framesOf(events: readonly TraceEvent[], { pid, tid }: Thread): Frames {
  const own = events.filter((event) => event.pid === pid && event.tid === tid)
  const begins = beginsOf(own)
  const work = own.filter(({ ph }) => ph === 'X')
  const outer = (...names: readonly ReadonlySet<string>[]): Part[] =>
    outermost(work.filter(({ name }) => names.some((some) => some.has(name))))
  // The time of a garbage collection during a script is part of the script's time.
  const script = outer(scripts, collections).filter(({ name }) => scripts.has(name))
  const scripted = sums(begins, script, 'dur')
  const long = work.filter(({ name, dur = 0 }) => name === TASK && dur / 1000 > LONG)
  return {
    begins,
    script: scripted,
    processor: sums(begins, script, 'tdur'),
    collections: outer(collections).map(({ tdur }) => tdur / 1000),
    rendering: sums(begins, outer(scripts, renderings), 'dur').map(
      (all, at) => all - (scripted[at] ?? 0),
    ),
    longTasks: long.map(({ dur = 0 }) => dur / 1000),
    busyTasks: long.filter(({ dur = 0, tdur = dur }) => tdur / 1000 > LONG).length,
  }
}
