/**
 * Reads the parts of a form while its body arrives (`form-parser.ts`). Texts are read up to a
 * limit. A file is passed on as a stream.
 */
import { isUtf8 } from 'node:buffer'
import { type Refusal, refuseFields } from '../../../protocol/errors.ts'
import type { PartHead } from '../multipart.ts'
import { type FormEvent, FormParser } from './form-parser.ts'

/** Thrown to refuse an upload while its body arrives or its file is stored. */
export class UploadRefused extends Error {
  readonly refusal: Refusal
  constructor(refusal: Refusal) {
    super(`the upload was refused: ${refusal.refused}`)
    this.refusal = refusal
  }
}
/**
 * Refuses an upload.
 * @throws {UploadRefused} always, with the given field errors.
 */
export function refuseUpload(...faults: Parameters<typeof refuseFields>): never {
  throw new UploadRefused(refuseFields(...faults))
}

/**
 * A part whose bytes are arriving. They can be read once, before the next part is requested. Each
 * chunk is valid until the next chunk is requested.
 */
export interface ArrivingPart extends PartHead {
  readonly bytes: AsyncIterable<Buffer>
}

async function* eventsOf(
  body: AsyncIterable<Buffer>,
  boundary: string,
): AsyncGenerator<FormEvent, void> {
  const parser = new FormParser(boundary)
  const invalid = (fault: string): never =>
    refuseUpload({ field: 'body', message: `is not a valid form: it ${fault}` })
  for await (const chunk of body) {
    const events = parser.push(chunk)
    if (typeof events === 'string') return invalid(events)
    yield* events
  }
  const fault = parser.end()
  if (fault !== undefined) invalid(fault)
}

/**
 * Yields the parts of a form in their order. Bytes of a part that are not read are skipped.
 * @throws {UploadRefused} for a malformed form, and the errors of `body`.
 */
export async function* arrivingParts(
  body: AsyncIterable<Buffer>,
  boundary: string,
): AsyncGenerator<ArrivingPart, void> {
  const events = eventsOf(body, boundary)
  try {
    for (let next = await events.next(); !next.done; next = await events.next()) {
      if (next.value.kind !== 'part') continue
      let ended = false
      const rest = {
        async next(): Promise<IteratorResult<Buffer, undefined>> {
          const event = ended ? undefined : await events.next()
          if (event && !event.done && event.value.kind === 'data')
            return { done: false, value: event.value.bytes }
          ended = true
          return { done: true, value: undefined }
        },
      }
      yield { ...next.value.head, bytes: { [Symbol.asyncIterator]: () => rest } }
      while (!ended) await rest.next()
    }
  } finally {
    await events.return()
  }
}

/**
 * Reads a part as text.
 * @param limit maximum number of bytes.
 * @throws {UploadRefused} when the text is longer or not UTF-8.
 */
export async function textOf({ name, bytes }: ArrivingPart, limit: number): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of bytes) {
    size += chunk.length
    if (size > limit)
      refuseUpload({ field: name, message: `must have at most ${limit} bytes`, actual: size })
    chunks.push(Buffer.from(chunk))
  }
  const whole = Buffer.concat(chunks)
  if (!isUtf8(whole)) refuseUpload({ field: name, message: 'is not UTF-8' })
  return whole.toString()
}
