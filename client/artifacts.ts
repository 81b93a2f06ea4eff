/**
 * Uploads and downloads artifacts. Bytes are streamed in both directions. A broken upload is
 * repeated from the beginning under the same `Idempotency-Key`, so it creates one artifact. A
 * broken download continues after the last byte that arrived, and the SHA-256 of the whole is
 * checked at the end.
 */
import { createHash, randomUUID } from 'node:crypto'
import { api } from '../protocol/api.ts'
import type { Artifact } from '../protocol/artifacts/schema.ts'
import { routeOf } from '../protocol/contract.ts'
import { formOf } from './artifacts/form.ts'
import { BatonError, reasonOf, refusal, type Transport } from './transport.ts'

/** Bytes to upload. */
export interface Source {
  /** Opens the bytes at their beginning. Called again if the upload is repeated. */
  open(): AsyncIterable<Uint8Array>
  /** Number of bytes, if known; the service then refuses an upload of another size. */
  readonly size?: number
}
export interface PutOptions {
  /** Name of the artifact: 1 to 256 characters, with `/` between folders. */
  readonly name: string
  /** Media type; `application/octet-stream` if absent. */
  readonly mime?: string
  readonly metadata?: Readonly<Record<string, unknown>>
  /** Requests the text of a DOCX, XLSX or PPTX file as Markdown. */
  readonly convert?: boolean
  /** Lease token of the job that produced the file. Its run then owns the artifact. */
  readonly lease?: string
  /** Idempotency key: a repeated upload under it returns the first artifact. Random if absent. */
  readonly idempotencyKey?: string
  /** Receives the number of bytes sent so far; begins again at 0 if the upload is repeated. */
  readonly advanced?: (bytes: number) => void
  readonly signal?: AbortSignal
}
/**
 * The name of the header with the lease token, for a service with the default brand. Proxies and
 * services with another brand accept it too.
 */
const LEASE_HEADER = 'x-service-lease-token'
/** Maximum number of attempts without progress, including the first. */
const ATTEMPTS = 4

/**
 * Uploads an artifact and returns its record.
 * @throws BatonError if the service refuses the upload or does not respond.
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
  const { path } = transport.path(row, {})
  for (let attempt = 1; ; attempt++) {
    const { url } = transport
    const form = formOf(
      {
        name: options.name,
        mime: options.mime,
        size_bytes: source.size === undefined ? undefined : String(source.size),
        metadata: options.metadata && JSON.stringify(options.metadata),
        convert: options.convert ? 'true' : undefined,
      },
      source.open(),
      advanced,
    )
    const answer = await sent(transport, url, path, {
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
    })
    if (answer instanceof Response && answer.ok) return (await answer.json()) as Artifact
    const failure = answer instanceof Response ? refusal(answer, await answer.text()) : answer
    await again(transport, url, failure, attempt)
  }
}

export interface GetOptions {
  /** Number of bytes that the caller already has; they are not sent again. */
  readonly after?: number
  /** The bytes that the caller already has, for the check of the whole at the end. */
  readonly known?: AsyncIterable<Uint8Array>
  readonly signal?: AbortSignal
}
/**
 * Downloads an artifact: yields its bytes after the first `after` ones.
 * @throws BatonError if the service refuses the download or does not respond; Error if the bytes do
 * not have the SHA-256 of the artifact.
 */
export async function* getArtifact(
  transport: Transport,
  id: string,
  { after = 0, known, signal }: GetOptions = {},
): AsyncGenerator<Uint8Array, void> {
  const { sha256 } = (await transport.call(api['artifact.get'], { id })) as Artifact
  const { path } = transport.path(api['artifact.content'], { id })
  const hash = createHash('sha256')
  if (known) for await (const chunk of known) hash.update(chunk)
  const checked = sha256 !== undefined && (after === 0 || known !== undefined)
  let at = after
  for (let attempt = 1; ; attempt++) {
    const { url } = transport
    const answer = await sent(transport, url, path, {
      headers: { ...transport.headers, ...(at > 0 && { range: `bytes=${at}-` }) },
      ...(signal && { signal }),
    })
    if (answer instanceof Response && isComplete(answer, at)) break
    if (!(answer instanceof Response) || !answer.ok || !answer.body) {
      const failure = answer instanceof Response ? refusal(answer, await answer.text()) : answer
      await again(transport, url, failure, attempt)
      continue
    }
    try {
      // A service that ignores the range sends everything.
      let skipped = at > 0 && answer.status === 200 ? at : 0
      for await (const whole of answer.body) {
        const chunk = whole.subarray(Math.min(skipped, whole.length))
        skipped -= whole.length - chunk.length
        if (chunk.length === 0) continue
        attempt = 0
        at += chunk.length
        hash.update(chunk)
        yield chunk
      }
      break
    } catch (error) {
      await again(transport, url, interrupted(url, error), attempt)
    }
  }
  if (checked && hash.digest('hex') !== sha256)
    throw new Error(`The bytes of ${id} are damaged: their SHA-256 is not ${sha256}.`)
}
/** Whether an answer says that the bytes end at this position (RFC 9110, section 14.4). */
const isComplete = (answer: Response, at: number): boolean =>
  answer.status === 416 && answer.headers.get('content-range') === `bytes */${at}`

const interrupted = (url: string, error: unknown): BatonError =>
  new BatonError(0, 'unreachable', `${url} does not respond: ${reasonOf(error)}`)
async function sent(
  transport: Transport,
  url: string,
  path: string,
  init: RequestInit & { readonly duplex?: 'half' },
): Promise<Response | BatonError> {
  try {
    return await transport.fetch(url + path, init)
  } catch (error) {
    if (init.signal?.aborted) throw error
    return interrupted(url, error)
  }
}
/**
 * Waits before another attempt, at the next address.
 * @throws the failure if another attempt cannot succeed, or the last one has failed.
 */
async function again(
  transport: Transport,
  url: string,
  failure: BatonError,
  attempt: number,
): Promise<void> {
  const temporary = failure.status === 0 || failure.status === 429 || failure.status >= 500
  if (!temporary || attempt >= ATTEMPTS) throw failure
  if (failure.status !== 429) transport.next(url)
  await transport.pause(250 * 2 ** attempt)
}
