/**
 * Prints the output of the tour: lines of text and, on a terminal, a progress bar of completed
 * parts below them.
 */
import progress from 'cli-progress'

/** Destination of the output: standard output, or a similar stream. */
export interface Out {
  write(text: string): unknown
  readonly isTTY?: boolean
}
export interface Show {
  line(text: string): void
  /** Updates the number of completed parts. */
  parts(done: number, total: number): void
  stop(): void
}

/** Returns an output with a progress bar on a terminal, and with plain lines elsewhere. */
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
