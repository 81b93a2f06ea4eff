/** Reads the beginning of an HTTP response, and cancels the rest. */
import type { FileStart } from './preview.tsx'

/** Returns the first bytes of a response, at most `most`. */
export async function readStart(answer: Response, most: number): Promise<FileStart> {
  const reader = answer.body?.getReader()
  const parts: Uint8Array[] = []
  let count = 0
  let complete = !reader
  while (reader && count < most) {
    const { done, value } = await reader.read()
    if (done) {
      complete = true
      break
    }
    parts.push(value)
    count += value.length
  }
  if (!complete) await reader?.cancel().catch(() => {})
  const bytes = new Uint8Array(Math.min(most, count))
  let at = 0
  for (const part of parts) {
    const fitting = part.subarray(0, bytes.length - at)
    bytes.set(fitting, at)
    at += fitting.length
  }
  return { bytes, complete: complete && count <= most }
}
