/**
 * Uploads and downloads artifacts. Bytes are streamed in both directions. An interrupted upload is
 * repeated from the beginning with the same `Idempotency-Key`, so only one artifact is created. An
 * interrupted download continues after the last byte received. The SHA-256 of a download is checked
 * at the end, unless the caller continues a download without its earlier bytes.
 */
import { createHash, randomUUID } from 'node:crypto'
import { api } from '../protocol/api.ts'
import type { Artifact } from '../protocol/artifacts/schema.ts'
import { routeOf } from '../protocol/contract.ts'
import { type Form, formOf } from './artifacts/form.ts'
import { BatonError, unreachableError } from './errors.ts'
import type { Transport } from './transport.ts'
import { orAborted } from './watchdog.ts'

/** The bytes of an upload, which may have to be opened more than once. */
export interface Source {
  /**
   * Opens the bytes at their beginning. Called when an attempt sends the bytes, so also again if
   * the upload is repeated. An exception, also while the bytes are read, ends the upload.
   */
  open(): AsyncIterable<Uint8Array>
  /** Number of bytes, if known. The service then refuses an upload of a different size. */
  readonly size?: number
}
export interface PutOptions {
  /** Name of the artifact: 1 to 256 characters, with `/` between folders. */
  readonly name: string
  /** Media type; `application/octet-stream` if absent. */
  readonly mime?: string
  readonly metadata?: Readonly<Record<string, unknown>>
  /** Requests the conversion of a DOCX, XLSX or PPTX file to Markdown. */
  readonly convert?: boolean
  /**
   * Lease token of the job that produced the file. The artifact then belongs to the run of the job.
   */
  readonly lease?: string
  /**
   * Idempotency key; random if absent. A repeated upload with the same key returns the first
   * artifact.
   */
  readonly idempotencyKey?: string
  /** Receives the number of bytes sent so far, which restarts at 0 if the upload is repeated. */
  readonly advanced?: (bytes: number) => void
  readonly signal?: AbortSignal
}
/** Name of the header that contains the lease token. A service of any brand accepts this name. */
const LEASE_HEADER = 'x-service-lease-token'
/** Milliseconds before an interrupted download continues. */
const PAUSE_MS = 500
/**
 * After an interruption, the earlier attempt keeps the idempotency key until its gateway has ended
 * it, or until the service abandons the uploads of a gateway that failed, by default after 90 s.
 * `pause`: milliseconds between the repeats. `repeats`: their maximum number.
 */
const KEY_IN_USE = { pause: 5000, repeats: 24 } as const

/**
 * Uploads an artifact and returns its record. After an interruption, waits up to two minutes until
 * the service has ended the interrupted upload.
 * @throws BatonError if the service refuses the upload or does not respond; the error of the source
 * if its bytes cannot be opened or read.
 * @example
 * const { id } = await putArtifact(baton.transport, {
 *   open: () => createReadStream('report.pdf'),
 * }, { name: 'reports/may.pdf', mime: 'application/pdf' })
 */
export async function putArtifact(
  transport: Transport,
  source: Source,
  options: PutOptions,
): Promise<Artifact> {
  const { lease, idempotencyKey = randomUUID(), advanced = () => {}, signal } = options
  const row = api['artifact.create']
  const fields = {
    name: options.name,
    mime: options.mime,
    size_bytes: source.size === undefined ? undefined : String(source.size),
    metadata: options.metadata && JSON.stringify(options.metadata),
    convert: options.convert ? 'true' : undefined,
  }
  let form: Form | undefined
  let attempts = 0
  // An interrupted request may leave its body unfinished, and the source open.
  const close = () => void form?.body.return().catch(() => {})
  const send = () =>
    transport.request(
      transport.path(row, {}).path,
      () => {
        close()
        signal?.throwIfAborted()
        attempts++
        form = formOf(fields, () => source.open(), advanced)
        return {
          method: routeOf(row).method,
          headers: {
            ...transport.headers,
            'content-type': form.type,
            'idempotency-key': idempotencyKey,
            ...(lease !== undefined && { [LEASE_HEADER]: lease }),
          },
          body: ReadableStream.from(form.body),
          duplex: 'half',
          ...(signal && { signal }),
        }
      },
      async (answer) => (await answer.json()) as Artifact,
    )
  try {
    for (let repeats = 0; ; repeats++) {
      try {
        return await send()
      } catch (error) {
        const isInUse = error instanceof BatonError && error.code === 'artifact_conflict'
        if (!isInUse || attempts === 1 || repeats === KEY_IN_USE.repeats) throw error
        close()
        const pause = transport.pause(KEY_IN_USE.pause)
        await (signal ? orAborted(pause, signal) : pause)
      }
    }
  } finally {
    close()
  }
}

export interface GetOptions {
  /** Number of bytes that the caller already has. The download starts after them. */
  readonly after?: number
  /**
   * The bytes that the caller already has. Without them, the SHA-256 of a continued download is not
   * checked.
   */
  readonly known?: AsyncIterable<Uint8Array>
  readonly signal?: AbortSignal
}
/**
 * Downloads an artifact. Yields the bytes that follow the first `after` bytes.
 * @throws BatonError if the service refuses the download or does not respond; Error if the SHA-256
 * of the bytes does not match.
 */
export async function* getArtifact(
  transport: Transport,
  id: string,
  { after = 0, known, signal }: GetOptions = {},
): AsyncGenerator<Uint8Array, void> {
  const record = await transport.call(api['artifact.get'], { artifact_id: id })
  const { sha256, size_bytes } = record as Artifact
  const { path } = transport.path(api['artifact.content'], { artifact_id: id })
  const hash = createHash('sha256')
  if (known) for await (const chunk of known) hash.update(chunk)
  const checked = sha256 !== undefined && (after === 0 || known !== undefined)
  for (let at = after, attempt = 1; at < size_bytes; attempt++) {
    const answer = await transport.request(
      path,
      () => {
        signal?.throwIfAborted()
        const range = at > 0 && { range: `bytes=${at}-` }
        return { headers: { ...transport.headers, ...range }, ...(signal && { signal }) }
      },
      async (answer) => answer,
    )
    // A service that ignores the range sends everything, so the first `at` bytes are skipped.
    let skipped = answer.status === 206 ? 0 : at
    try {
      for await (const whole of answer.body ?? []) {
        const chunk = whole.subarray(Math.min(skipped, whole.length))
        skipped -= whole.length - chunk.length
        if (chunk.length === 0) continue
        attempt = 0
        at += chunk.length
        hash.update(chunk)
        yield chunk
      }
      // Without a content length, a connection that is closed early looks like a complete response.
      if (at < size_bytes) throw new Error(`only ${at} of ${size_bytes} bytes arrived`)
    } catch (error) {
      signal?.throwIfAborted()
      if (attempt >= transport.tries) throw unreachableError(transport.url, error)
      transport.next()
      await transport.pause(PAUSE_MS)
    }
  }
  if (checked && hash.digest('hex') !== sha256)
    throw new Error(`The bytes of ${id} are damaged: their SHA-256 is not ${sha256}.`)
}
