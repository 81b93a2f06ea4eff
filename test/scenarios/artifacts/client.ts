/** Uploads and downloads artifacts in all the ways that clients do. */
import { createHash, randomBytes } from 'node:crypto'
import { request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { api } from '../../../protocol/api.ts'
import type { Row } from '../../../protocol/contract.ts'
import { requestOf } from '../../support/service.ts'

export type Open = Record<string, unknown>
export interface Got {
  readonly status: number
  readonly headers: Headers
  readonly bytes: Buffer
  readonly body: Open
}
export const sha256 = (bytes: Uint8Array): string =>
  createHash('sha256').update(bytes).digest('hex')
export const codeOf = ({ body }: Pick<Got, 'body'>): unknown =>
  (body['error'] as Open | undefined)?.['code']
/** Returns the names of the invalid fields. */
export const faultsOf = ({ body }: Pick<Got, 'body'>): unknown[] =>
  (
    (((body['error'] as Open | undefined)?.['details'] as Open | undefined)?.['fields'] ??
      []) as Open[]
  ).map(({ field }) => field)

/** A part of a form: a text, or a file with its type. */
export type FormPart = readonly [
  name: string,
  content: string | Uint8Array,
  file?: { readonly filename?: string; readonly type?: string },
]
const BOUNDARY = 'b0undary'
const formOf = (parts: readonly FormPart[]): Buffer =>
  Buffer.concat([
    ...parts.flatMap(([name, content, file]) => [
      Buffer.from(
        `--${BOUNDARY}\r\nContent-Disposition: form-data; name="${name}"` +
          (file ? `; filename="${file.filename ?? 'a'}"` : '') +
          (file?.type ? `\r\nContent-Type: ${file.type}` : '') +
          '\r\n\r\n',
      ),
      Buffer.from(content),
      Buffer.from('\r\n'),
    ]),
    Buffer.from(`--${BOUNDARY}--\r\n`),
  ])
interface UploadOptions {
  readonly key?: string | null
  readonly headers?: Readonly<Record<string, string>>
  /** Whether to send the body with chunked transfer encoding, without `Content-Length`. */
  readonly chunked?: boolean
  readonly project?: string
}

export interface ArtifactClient {
  readonly url: string
  upload(parts: readonly FormPart[], options?: UploadOptions): Promise<Got>
  put(name: string, bytes: Uint8Array, options?: UploadOptions & { fields?: Open }): Promise<Got>
  get(path: string, options?: UploadOptions & { method?: string }): Promise<Got>
  content(id: unknown, options?: UploadOptions & { method?: string; query?: string }): Promise<Got>
  /** Begins an upload of `size` bytes, and sends `sent` of them. */
  begin(size: number, sent: number, headers?: Readonly<Record<string, string>>): Promise<Socket>
  /**
   * Begins an upload without sending the end of its form. `finish` sends the end and returns the
   * answer as text.
   */
  slow(headers?: Readonly<Record<string, string>>, project?: string): { finish(): Promise<string> }
}

export function artifactClient(url: string, root: string): ArtifactClient {
  const pathOf = (project = 'default', row: Row = api['artifact.create'], artifact_id = '') =>
    requestOf(row, { project, artifact_id }).path
  const authorization = (key: string | null | undefined): Record<string, string> =>
    key === null ? {} : { authorization: `Bearer ${key ?? root}` }
  const send = (
    method: string,
    path: string,
    headers: Readonly<Record<string, string>>,
    body?: Buffer,
    chunked = false,
  ): Promise<Got> =>
    new Promise((resolve, reject) => {
      const sent = request(new URL(path, url), {
        method,
        agent: false,
        headers: {
          ...headers,
          ...(body && !chunked && { 'content-length': String(body.length) }),
          ...(chunked && { 'transfer-encoding': 'chunked' }),
        },
      })
      sent.on('error', reject).on('response', (response) => {
        const chunks: Buffer[] = []
        response
          .on('data', (chunk: Buffer) => chunks.push(chunk))
          .on('error', reject)
          .on('end', () => {
            const bytes = Buffer.concat(chunks)
            const json = /json/.test(response.headers['content-type'] ?? '')
            let parsed: Open = {}
            try {
              parsed = json ? (JSON.parse(bytes.toString()) as Open) : {}
            } catch {
              // An artifact can have the media type of JSON although its content is not valid JSON.
            }
            resolve({
              status: response.statusCode ?? 0,
              headers: new Headers(response.headers as Record<string, string>),
              bytes,
              body: parsed,
            })
          })
      })
      if (body && chunked)
        for (let at = 0; at < body.length; at += 10_007) sent.write(body.subarray(at, at + 10_007))
      sent.end(chunked ? undefined : body)
    })
  const upload: ArtifactClient['upload'] = (parts, { key, headers, chunked, project } = {}) =>
    send(
      'POST',
      pathOf(project),
      {
        'content-type': `multipart/form-data; boundary=${BOUNDARY}`,
        ...authorization(key),
        ...headers,
      },
      formOf(parts),
      chunked,
    )
  const get: ArtifactClient['get'] = (path, { key, headers, method = 'GET' } = {}) =>
    send(method, path, { ...authorization(key), ...headers })
  return {
    url,
    upload,
    put: (name, bytes, { fields = {}, ...options } = {}) =>
      upload(
        [
          ['name', name],
          ...Object.entries(fields).map(([field, value]) => [field, String(value)] as const),
          ['file', bytes, { filename: 'local', type: 'text/plain' }],
        ],
        options,
      ),
    get,
    content: (id, { query = '', ...options } = {}) =>
      get(pathOf(options.project, api['artifact.content'], String(id)) + query, options),
    begin: (size, sent, headers = {}) =>
      new Promise((resolve) => {
        const { hostname, port } = new URL(url)
        const socket = connect(Number(port), hostname, () => {
          const head = formOf([['name', 'cut']])
            .toString()
            .replace(`--${BOUNDARY}--\r\n`, '')
          const lines = Object.entries({
            Host: hostname,
            ...authorization(root),
            'Content-Type': `multipart/form-data; boundary=${BOUNDARY}`,
            'Content-Length': String(size),
            ...headers,
          }).map(([name, value]) => `${name}: ${value}\r\n`)
          socket.write(
            `POST ${pathOf()} HTTP/1.1\r\n${lines.join('')}\r\n${head}--${BOUNDARY}\r\n` +
              'Content-Disposition: form-data; name="file"; filename="a"\r\n\r\n',
          )
          socket.write(randomBytes(sent), () => resolve(socket))
        })
        socket.on('error', () => {})
      }),
    slow: (headers = {}, project) => {
      const { hostname, port } = new URL(url)
      const socket = connect(Number(port), hostname)
      const begin =
        `--${BOUNDARY}\r\nContent-Disposition: form-data; name="name"\r\n\r\nslow\r\n` +
        `--${BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nbytes`
      const end = `\r\n--${BOUNDARY}--\r\n`
      const lines = Object.entries({
        Host: hostname,
        ...authorization(root),
        Connection: 'close',
        'Content-Type': `multipart/form-data; boundary=${BOUNDARY}`,
        'Content-Length': String(begin.length + end.length),
        ...headers,
      }).map(([name, value]) => `${name}: ${value}\r\n`)
      socket.write(`POST ${pathOf(project)} HTTP/1.1\r\n${lines.join('')}\r\n${begin}`)
      const answer = new Promise<string>((resolve) => {
        let text = ''
        socket.on('data', (chunk) => (text += chunk)).once('close', () => resolve(text))
      })
      return {
        finish: () => {
          socket.write(end)
          return answer
        },
      }
    },
  }
}
