/** Backpressure: writing no faster than a client reads. */
import type { Sink } from '../http/respond.ts'

/** Returns a function that waits until a sink can be written to, or is closed. */
export function readiness(sink: Sink): () => Promise<void> {
  let wake = () => {}
  sink.onDrain(() => wake())
  sink.onClose(() => wake())
  return () =>
    sink.full && !sink.closed
      ? new Promise<void>((resolve) => {
          wake = resolve
        })
      : Promise.resolve()
}
