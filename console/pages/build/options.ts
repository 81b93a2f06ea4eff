/** Converts the options for starting a run from the texts of input fields to request fields. */
import { isJsonObject } from '../../../protocol/rules/json-object.ts'
import type { FieldFault } from '../../api/client.ts'

/** The entered text of each field; '' for an absent option. */
export interface WrittenOptions {
  readonly priority: string
  readonly queue: string
  readonly metadata: string
  readonly idempotency_key: string
  readonly external_id: string
}
export const noOptions: WrittenOptions = {
  priority: '',
  queue: '',
  metadata: '',
  idempotency_key: '',
  external_id: '',
}
/** The options as fields of a request. */
export interface StartOptions {
  readonly priority?: number
  readonly queue?: string
  readonly metadata?: Record<string, unknown>
  readonly idempotency_key?: string
  readonly external_id?: string
}

/** Returns the options, or the faults of the entered texts. Empty fields are left out. */
export function readOptions(
  written: WrittenOptions,
  messages: { readonly notWhole: string; readonly notObject: string },
): { readonly options: StartOptions } | { readonly faults: readonly FieldFault[] } {
  const faults: FieldFault[] = []
  let options: StartOptions = {}
  const { priority, metadata } = written
  if (priority.trim() !== '') {
    const number = Number(priority)
    if (Number.isInteger(number)) options = { ...options, priority: number }
    else faults.push({ field: 'priority', message: messages.notWhole })
  }
  if (metadata.trim() !== '') {
    let value: unknown
    try {
      value = JSON.parse(metadata)
    } catch {
      value = undefined
    }
    if (isJsonObject(value)) options = { ...options, metadata: value }
    else faults.push({ field: 'metadata', message: messages.notObject })
  }
  for (const name of ['queue', 'idempotency_key', 'external_id'] as const) {
    const value = written[name].trim()
    if (value !== '') options = { ...options, [name]: value }
  }
  return faults.length > 0 ? { faults } : { options }
}
