/** Formats the results of the console benchmark as tables, with the goal of each figure. */
import { median, percentile } from '../support/measure.ts'
import { cell, ms, note, table, whole } from '../support/table.ts'
import type { LiveCost } from './live.ts'
import { greatestRepeated } from './places.ts'
import { EVENTS_PER_PART, type Scrolled } from './scroll.ts'
import { growthOf } from './slope.ts'
import { SOAKED, type SoakRow } from './soak.ts'
import type { Frames } from './trace.ts'
import type { Usable } from './views.ts'

/** The goals: times in milliseconds, shares of one core, and growth as a share. */
const GOALS = { usable: 800, script: 8, core: 0.3, growth: 0.05, run: 1000 } as const

const MIB = 2 ** 20
const verdict = (met: boolean): string => (met ? 'yes' : '**no**')
const percent = (share: number): string => `${(share * 100).toFixed(1)} %`
/** Returns the greatest value. */
export const worst = (values: readonly number[]): number => Math.max(...values)
const halfAndWorst = (values: readonly number[]): string =>
  cell(whole(median(values)), whole(worst(values)))

/** The measured times of loading a page. */
export interface Loads {
  readonly name: string
  readonly times: readonly Usable[]
}
/** Returns the table of the times until pages are usable. */
export function viewsTable(all: readonly Loads[], runs: number): string {
  const lines = all.map(({ name, times }) => {
    const reacted = times.map((one) => one.reacted)
    return [
      name,
      halfAndWorst(times.map(({ shown }) => shown)),
      halfAndWorst(reacted),
      `≤ ${GOALS.usable}`,
      verdict(worst(reacted) <= GOALS.usable),
    ]
  })
  return (
    table(
      [
        `first view, ${whole(runs)} runs in the project`,
        'shows its data, p50 / worst ms',
        'has reacted to a click, p50 / worst ms',
        'goal for the worst',
        'met',
      ],
      lines,
    ) +
    note(
      `${all[0]?.times.length ?? 0} loads each, timed by the page from the start of its navigation.`,
      'Cold: a new browser profile with an empty cache.',
      'The mouse clicks as soon as the data is shown; the time ends with the frame of the reaction.',
    )
  )
}

const spreadOf = (values: readonly number[]): string =>
  cell(ms(percentile(values, 0.5)), ms(percentile(values, 0.99)), ms(worst(values)))
/**
 * Returns the table of the frames in several passes of scrolling through the list. The machine
 * delays single frames at random, so only the times that recur in each pass decide whether a goal
 * is met.
 */
export function scrollTable(passes: readonly Scrolled[]): string {
  const line = (
    name: string,
    { script, processor, collections, rendering, longTasks, busyTasks }: Frames,
  ): string[] => [
    name,
    whole(script.length),
    spreadOf(script),
    spreadOf(processor),
    whole(processor.filter((one) => one > GOALS.script).length),
    collections.length === 0
      ? '0'
      : `${whole(collections.length)}, up to ${ms(worst(collections))} ms`,
    spreadOf(rendering),
    longTasks.length === 0
      ? '0'
      : `${longTasks.length}, up to ${whole(worst(longTasks))} ms; ${busyTasks} by processor time`,
  ]
  const lines = (name: string, of: (pass: Scrolled) => Frames): string[][] =>
    passes.map((pass, index) => [...line(`${name}, pass ${index + 1}`, of(pass)), '', ''])
  const judged = (name: string, of: (pass: Scrolled) => Scrolled['wheel']): string[] => {
    const script = greatestRepeated(passes.map((pass) => of(pass).places))
    const tasks = Math.min(...passes.map((pass) => of(pass).busyTasks))
    const goal = `≤ ${GOALS.script}, none`
    const met = verdict(script <= GOALS.script && tasks === 0)
    return [`*${name}, in each pass*`, '', '', ms(script), '', '', '', `${tasks}`, goal, met]
  }
  return (
    table(
      [
        `list of ${whole(passes[0]?.runs ?? 0)} runs`,
        'frames',
        'script per frame, p50 / p99 / greatest ms',
        'of it processor time',
        `frames over ${GOALS.script} ms of it`,
        'collections',
        'style, layout and paint',
        'tasks over 50 ms',
        'goal: script, long tasks',
        'met',
      ],
      [
        ...lines('wheel, to the end and back', ({ wheel }) => wheel),
        judged('wheel', ({ wheel }) => wheel),
        ...lines('scroll bar, to the end and back', ({ bar }) => bar),
        judged('scroll bar', ({ bar }) => bar),
      ],
    ) +
    note(
      'Each turn of the wheel is longer than the list is high, so most frames show other runs only.',
      'The pages of the list are loaded on the way.',
      'Script includes the layout that it forces, and the collections that interrupt it. ' +
        'Collections are also listed by themselves, in processor time.',
      'Processor time leaves out the time in which other programs had the core: ' +
        'the browser, its drawing processes and the server share them. ' +
        'It still includes the time in which the host of this virtual machine delayed the core.',
      'What the page causes at a place of the list comes again in each pass. So the time of a place is the ' +
        'least of the passes, and the greatest time of a place decides whether the goal is met ("in each pass"). ' +
        `A place has ${EVENTS_PER_PART} turns of the wheel, or mouse positions.`,
      `The heap of scripts has ${whole(worst(passes.map(({ heap }) => heap)) / MIB)} MiB with all runs.`,
    )
  )
}

/** The cost of open pages with both fsync settings of the journal. */
export interface LiveLine {
  readonly name: string
  /** Costs by the fsync setting of the journal, such as `fsync always`. */
  readonly costs: ReadonlyMap<string, LiveCost>
}
/** Returns the table of the costs of live pages. */
export function liveTable(lines: readonly LiveLine[], seconds: number): string {
  const settings = [...(lines[0]?.costs.keys() ?? [])]
  return (
    table(
      [
        `open: ${settings.join(' / ')}`,
        'events/s',
        'pages and worker, of a core',
        'drawing and network, of a core',
        'tasks over 50 ms',
        'goal for pages and worker',
        'met',
      ],
      lines.map(({ name, costs }) => {
        const all = [...costs.values()]
        const each = (text: (cost: LiveCost) => string): string => cell(...all.map(text))
        return [
          name,
          each(({ eventsPerSecond }) => whole(eventsPerSecond)),
          each(({ renderers }) => percent(renderers)),
          each(({ others }) => percent(others)),
          each(({ longTasks }) => String(longTasks)),
          `≤ ${percent(GOALS.core)}`,
          verdict(all.every(({ renderers }) => renderers <= GOALS.core)),
        ]
      }),
    ) +
    note(
      `Runs of one step start and end. ${seconds} s each, without the load of the page.`,
      'Processor time of all processes of pages and workers, from the operating system.',
      'Chromium draws without a graphics card here, in processes that are listed apart.',
    )
  )
}

/** Returns the table of the times that a run takes to open. */
export function runTable(
  steps: number,
  loads: readonly Loads[],
  clicks: readonly number[],
): string {
  const line = (name: string, times: readonly number[], reacted: string): string[] => [
    name,
    halfAndWorst(times),
    reacted,
    `≤ ${GOALS.run}`,
    verdict(worst(times) <= GOALS.run),
  ]
  return (
    table(
      [
        `run of ${whole(steps)} steps`,
        'timeline is shown, p50 / worst ms',
        'has reacted to a click, p50 / worst ms',
        'goal for the worst',
        'met',
      ],
      [
        ...loads.map(({ name, times }) =>
          line(
            name,
            times.map(({ shown }) => shown),
            halfAndWorst(times.map(({ reacted }) => reacted)),
          ),
        ),
        line('by a click in the list', clicks, '–'),
      ],
    ) + note('A link is timed from the start of the navigation, and a click from its event.')
  )
}

/** Returns the table of the soak test: one row per interval, and then the changes and the goal. */
export function soakTable(rows: readonly SoakRow[], seconds: number): string {
  const figures = ['objects', 'heap', 'nodes', 'listeners'] as const
  const shown = (figure: (typeof figures)[number], value: number): string =>
    figure === 'heap' || figure === 'objects' ? (value / MIB).toFixed(2) : whole(value)
  const growths = figures.map((figure) =>
    SOAKED.map((_, page) =>
      growthOf(rows.map(({ at, sizes }) => ({ at, value: sizes[page]?.[figure] ?? Number.NaN }))),
    ),
  )
  const signed = (figure: (typeof figures)[number], value: number): string =>
    `${value < 0 ? '−' : '+'}${shown(figure, Math.abs(value))}`
  const isFlat = growths.every(
    (pages, index) =>
      figures[index] === 'heap' || pages.every(({ share }) => share <= GOALS.growth),
  )
  return (
    table(
      [
        `soak: ${SOAKED.join(' / ')}`,
        'objects of scripts, MiB',
        'heap with compiled code, MiB',
        'elements and texts',
        'listeners',
      ],
      [
        ...rows.map(({ at, sizes }) => [
          `after ${whole(at)} s`,
          ...figures.map((figure) => cell(...sizes.map((size) => shown(figure, size[figure])))),
        ]),
        [
          '*change per hour*',
          ...figures.map((figure, index) =>
            cell(...(growths[index] ?? []).map(({ perHour }) => signed(figure, perHour))),
          ),
        ],
        [
          '*change during the soak*',
          ...growths.map((pages) => cell(...pages.map(({ share }) => percent(share)))),
        ],
        [
          `*goal: flat, at most ${percent(GOALS.growth)} during the soak*`,
          verdict(isFlat),
          'not judged',
          '',
          '',
        ],
      ],
    ) +
    note(
      `${whole(seconds)} s with 200 events/s. Garbage is collected before each row.`,
      'The heap also contains compiled code, which V8 adds for hours as functions are called more often.',
      'The changes are those of the lines that fit the rows best.',
      'The last page goes through ten pages of the console again and again, and is measured at home.',
    )
  )
}
