/**
 * Reads the file and the other fields from the body of an upload, which is a form or JSON. The
 * other fields are validated like any body. The file itself is inspected in `file.ts`.
 */
import { isUtf8 } from 'node:buffer'
import type { Row } from '../../protocol/contract.ts'
import {
  type FieldError,
  isRefusal,
  type Refusal,
  refuse,
  refuseFields,
} from '../../protocol/errors.ts'
import type { Incoming } from '../http/request.ts'
import type { Exchange } from '../http/respond.ts'
import { readBody } from '../http/validate.ts'
import { boundaryOf, type Part, partsOf } from './multipart.ts'
import type { Semaphore } from './semaphore.ts'

/** A received file. `filename` and `type` are the values that the client declares. */
export interface Uploaded {
  readonly bytes: Buffer
  readonly filename?: string
  readonly type?: string
}
interface Read {
  readonly body: Readonly<Record<string, unknown>>
  readonly file: Uploaded
}

/**
 * Reads an upload after the semaphore has reserved its bytes. The bytes stay reserved until the
 * exchange ends.
 */
export async function readUpload(
  bodyMemory: Semaphore,
  row: Row,
  incoming: Incoming,
  exchange: Exchange,
): Promise<Read | Refusal> {
  const { upload, expected } = incoming
  if (!upload) return refuseFields({ field: 'body', message: 'is required' })
  const type = incoming.header('content-type')
  const boundary = boundaryOf(type)
  if (boundary === undefined && !/^application\/json\b/i.test(type ?? ''))
    return refuse(
      'unsupported_media_type',
      { content_type: type ?? '' },
      'Send the file as multipart/form-data, or as application/json with base64.',
    )
  exchange.onClose(await bodyMemory.acquire(expected))
  const body = await upload.bytes()
  if (body === 'too_large') return refuse('payload_too_large', { limit: row.shape.limit })
  if (!body) return refuse('bad_request')
  return boundary === undefined ? fromJson(row, body) : fromForm(row, body, boundary)
}

/** A placeholder for the file while the other fields of the body are validated. */
const PLACE = 'AA=='
function fromForm(row: Row, bytes: Buffer, boundary: string): Read | Refusal {
  const parts = partsOf(bytes, boundary)
  if (typeof parts === 'string')
    return refuseFields({ field: 'body', message: `is not a valid form: it ${parts}` })
  const faults: FieldError[] = []
  const values: Record<string, unknown> = Object.create(null)
  let file: Part | undefined
  for (const part of parts) {
    const known = part.name === 'file' ? file : values[part.name]
    if (known !== undefined) faults.push({ field: part.name, message: 'appears more than once' })
    else if (part.name === 'file') file = part
    else if (!isUtf8(part.bytes)) faults.push({ field: part.name, message: 'is not UTF-8' })
    else values[part.name] = scalar(part.name, part.bytes.toString('utf8'))
  }
  if (faults.length > 0) return refuseFields(...faults)
  const read = readBody(row, JSON.stringify({ ...values, ...(file && { file: PLACE }) }), undefined)
  if (isRefusal(read)) return read
  const { file: _, ...body } = read
  const { filename, type, bytes: content } = file as Part
  return {
    body,
    file: {
      bytes: content,
      ...(filename !== undefined && { filename }),
      ...(type !== undefined && { type }),
    },
  }
}
/** Converts the text of a form part to the type of its field: only `size_bytes` is a number. */
const scalar = (name: string, text: string): unknown =>
  name === 'size_bytes' && /^\d{1,15}$/.test(text) ? Number(text) : text

function fromJson(row: Row, bytes: Buffer): Read | Refusal {
  const read = readBody(row, isUtf8(bytes) ? bytes.toString('utf8') : undefined, 'application/json')
  if (isRefusal(read)) return read
  const { file, ...body } = read
  const text = String(file)
  if (!/^[A-Za-z0-9+/\r\n]*={0,2}\s*$/.test(text))
    return refuseFields({ field: 'file', message: 'is not base64' })
  return { body, file: { bytes: Buffer.from(text, 'base64') } }
}
