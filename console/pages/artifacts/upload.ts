/** Uploads files as artifacts, with progress. At most `MAX_RUNNING` run at the same time. */
import { signal } from '@preact/signals'
import { ApiError, randomKey } from '../../api/client.ts'
import { guardUnload } from '../../router/router.ts'

/** One upload of this browser tab. */
export interface Upload {
  readonly id: number
  readonly project: string
  readonly name: string
  readonly size: number
  readonly sent: number
  readonly state: 'waiting' | 'sending' | 'done' | 'failed'
  /** Id of the artifact after a successful upload. */
  readonly artifact?: string
  readonly error?: ApiError
}

/** Maximum number of concurrent uploads. */
const MAX_RUNNING = 2
/** Maximum length of the name of an artifact in characters. */
const MAX_NAME_CHARACTERS = 256
/** The uploads of this browser tab, newest first. They continue while other pages are shown. */
export const uploads = signal<readonly Upload[]>([])

const waiting: { readonly id: number; readonly file: File }[] = []
const running = new Map<number, XMLHttpRequest>()
let last = 0
let isGuarded = false

const change = (id: number, changes: Partial<Upload>): void => {
  uploads.value = uploads.value.map((one) => (one.id === id ? { ...one, ...changes } : one))
}

/** Adds files to the uploads of a project. */
export function uploadFiles(project: string, files: readonly File[]): void {
  // Uploads continue on other pages, so every page asks for confirmation before it is unloaded.
  if (!isGuarded) guardUnload(() => waiting.length > 0 || running.size > 0)
  isGuarded = true
  for (const file of files) {
    const id = ++last
    const name = (file.webkitRelativePath || file.name).slice(-MAX_NAME_CHARACTERS)
    uploads.value = [
      { id, project, name, size: file.size, sent: 0, state: 'waiting' },
      ...uploads.value,
    ]
    waiting.push({ id, file })
  }
  next()
}
/** Aborts an upload if it has not ended, and removes it from the list. */
export function dismissUpload(id: number): void {
  const at = waiting.findIndex((one) => one.id === id)
  if (at >= 0) waiting.splice(at, 1)
  running.get(id)?.abort()
  uploads.value = uploads.value.filter((one) => one.id !== id)
}
function next(): void {
  while (running.size < MAX_RUNNING) {
    const one = waiting.shift()
    if (!one) return
    const upload = uploads.peek().find(({ id }) => id === one.id)
    if (upload) send(upload, one.file)
  }
}

/** Sends a file with `XMLHttpRequest`, because `fetch` does not report upload progress. */
function send({ id, project, name }: Upload, file: File): void {
  const form = new FormData()
  form.set('name', name)
  form.set('size_bytes', String(file.size))
  if (file.type !== '') form.set('mime', file.type.split(';')[0] ?? '')
  // The service reads the form as a stream, so the file must be the last part.
  form.set('file', file)
  const request = new XMLHttpRequest()
  running.set(id, request)
  request.open('POST', `/v1/projects/${encodeURIComponent(project)}/artifacts`)
  request.setRequestHeader('idempotency-key', randomKey())
  request.upload.onprogress = ({ loaded, total }) =>
    change(id, { sent: total > 0 ? Math.round((loaded / total) * file.size) : 0 })
  request.onloadend = () => {
    running.delete(id)
    const answer = read(request.responseText)
    if (request.status >= 200 && request.status < 300)
      change(id, { state: 'done', sent: file.size, artifact: String(answer['id']) })
    else change(id, { state: 'failed', error: errorOf(request, answer) })
    next()
  }
  change(id, { state: 'sending' })
  request.send(form)
}
function read(text: string): Readonly<Record<string, unknown>> {
  try {
    return JSON.parse(text) as Record<string, unknown>
  } catch {
    return {}
  }
}
function errorOf(request: XMLHttpRequest, answer: Readonly<Record<string, unknown>>): ApiError {
  const {
    code = 'unreachable',
    message = 'The service does not answer.',
    details,
  } = (answer['error'] ?? {}) as {
    code?: string
    message?: string
    details?: Record<string, unknown>
  }
  return new ApiError(request.status, code, message, details)
}
