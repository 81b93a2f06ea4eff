/**
 * Reads and checks the fields of the form that uploads an artifact. The parts arrive in any order,
 * so each field is checked when it arrives, and the form as a whole when it is complete.
 */
import { limits } from '../../../protocol/artifacts/schema.ts'
import type { JsonObject } from '../../../protocol/common.ts'
import { refuse } from '../../../protocol/errors.ts'
import { getOwn } from '../../../protocol/lookup.ts'
import {
  type ArrivingPart,
  refuseUpload,
  textOf,
  UploadRefused,
} from '../../files/streaming/form.ts'
import { unsafeValueFault } from '../../http/validate.ts'

/** The fields of a complete upload form, which describe the file. */
export interface ArtifactForm {
  readonly name: string
  readonly mime_type: string
  readonly metadata?: JsonObject
  readonly convert?: true
}

/** Fields whose values the service determines. A form that contains one of them is refused. */
const assigned = new Set([
  'run_id',
  'step_id',
  'job_id',
  'attempt',
  'visibility',
  'owner',
  'owned_by',
  'tags',
])
/** Maximum number of bytes of a field without a specific limit. */
const MAX_FIELD_BYTES = 4096
const MEDIA_TYPE = /^[a-z0-9][a-z0-9!#$&^_.+-]{0,126}\/[a-z0-9][a-z0-9!#$&^_.+-]{0,126}$/

const bareType = (text: string | undefined): string | undefined => {
  const type = text?.split(';')[0]?.trim().toLowerCase() ?? ''
  return MEDIA_TYPE.test(type) ? type : undefined
}

/** Collects the fields of a form. The methods throw `UploadRefused` when a field is invalid. */
export class ArtifactFields {
  readonly #texts = new Map<string, string>()
  readonly #limit: number
  #metadata: JsonObject | undefined
  /** The declared size of the file in bytes. */
  size: number | undefined

  /** @param limit maximum size of a file in bytes. */
  constructor(limit: number) {
    this.#limit = limit
  }

  /**
   * Reads and checks a field. Refuses unknown and repeated fields, and fields that the service
   * determines.
   */
  async take(part: ArrivingPart): Promise<void> {
    const { name } = part
    if (assigned.has(name)) refuseUpload({ field: name, message: 'is determined by the service' })
    const check = getOwn(this.#checks, name)
    if (!check)
      refuseUpload({
        field: name,
        message: 'is not a known field',
        expected: ['file', ...Object.keys(this.#checks)],
      })
    if (this.#texts.has(name)) refuseUpload({ field: name, message: 'appears more than once' })
    const text = await textOf(part, name === 'metadata' ? limits.metadata : MAX_FIELD_BYTES)
    this.#texts.set(name, text)
    check(text)
  }

  readonly #checks: Readonly<Record<string, (text: string) => void>> = {
    name: (text: string) => {
      const length = [...text].length
      if (length < 1 || length > limits.name)
        refuseUpload({
          field: 'name',
          message: `must have 1 to ${limits.name} characters`,
          actual: length,
        })
    },
    mime: (text: string) => {
      if (bareType(text) === undefined)
        refuseUpload({ field: 'mime', message: 'is not a media type', actual: text.slice(0, 200) })
    },
    size_bytes: (text: string) => {
      if (!/^\d{1,15}$/.test(text))
        refuseUpload({ field: 'size_bytes', message: 'must be a whole number of at least 0' })
      this.size = Number(text)
      if (this.size > this.#limit)
        throw new UploadRefused(refuse('payload_too_large', { limit: this.#limit }))
    },
    metadata: (text: string) => {
      let value: unknown
      try {
        value = JSON.parse(text)
      } catch {
        refuseUpload({ field: 'metadata', message: 'is not JSON' })
      }
      if (typeof value !== 'object' || value === null || Array.isArray(value))
        refuseUpload({ field: 'metadata', message: 'must be a JSON object' })
      const fault = unsafeValueFault(value)
      if (fault)
        refuseUpload({ ...fault, field: fault.field ? `metadata.${fault.field}` : 'metadata' })
      this.#metadata = value as JsonObject
    },
    convert: (text: string) => {
      if (text !== 'true' && text !== 'false')
        refuseUpload({ field: 'convert', message: 'must be true or false' })
    },
  }

  /**
   * Refuses an upload whose number of received bytes exceeds the declared size or, if `whole`,
   * differs from it.
   */
  checkSize(actual: number, whole: boolean): void {
    const { size: expected } = this
    if (expected === undefined || (whole ? actual === expected : actual <= expected)) return
    refuseUpload({
      field: 'size_bytes',
      message: 'does not match the size of the file',
      expected,
      actual,
    })
  }

  /**
   * Checks and returns the complete form.
   * @param type the media type of the file's part; undefined when the part specifies none.
   */
  whole(type: string | undefined): ArtifactForm {
    const texts = this.#texts
    const name = texts.get('name')
    if (name === undefined) refuseUpload({ field: 'name', message: 'is required' })
    return {
      name,
      mime_type: bareType(texts.get('mime')) ?? bareType(type) ?? 'application/octet-stream',
      ...(this.#metadata && { metadata: this.#metadata }),
      ...(texts.get('convert') === 'true' && { convert: true }),
    }
  }
}
