/** What the person at the terminal sees: lines, and below them, on a terminal, a bar of the parts that are done. */
import progress from 'cli-progress'

/** Where the tour writes: standard output, or anything like it. */
export interface Out {
  write(text: string): unknown
  readonly isTTY?: boolean
}
export interface Show {
  line(text: string): void
  /** So many parts of so many are done. */
  parts(done: number, total: number): void
  stop(): void
}

/** Show on a terminal with a bar, elsewhere as plain lines. */
export function show(out: Out): Show {
  if (out.isTTY !== true)
    return { line: (text) => void out.write(`${text}\n`), parts: () => {}, stop: () => {} }
  const bars = new progress.MultiBar(
    {
      format: '  {bar} {value}/{total} parts measured',
      stream: out as NodeJS.WriteStream,
      clearOnComplete: true,
      hideCursor: true,
      barsize: 32,
    },
    progress.Presets.shades_classic,
  )
  let bar: progress.SingleBar | undefined
  let stopped = false
  return {
    line: (text) => {
      if (bar && !stopped) bars.log(`${text}\n`)
      else out.write(`${text}\n`)
    },
    parts: (done, total) => {
      bar ??= bars.create(total, 0)
      bar.update(done)
      bars.update()
    },
    stop: () => {
      if (stopped) return
      stopped = true
      if (bar) bars.stop()
    },
  }
}
