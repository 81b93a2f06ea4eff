/** Exposes the backpressure of a sink as a promise, for code that writes page by page. */
import type { Sink } from '../http/respond.ts'

/**
 * Returns a function whose promise resolves when the sink is not full, or is closed. `readiness`
 * sets the sink's `onDrain`, so other code must not set it.
 */
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
