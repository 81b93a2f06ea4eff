/**
 * Shows short messages about outcomes, at most `MAX_TOASTS` at a time. Errors stay until they are
 * closed or newer messages displace them.
 */
import { signal } from '@preact/signals'
import { ApiError } from '../api/client.ts'
import { designText as text } from './text.ts'

interface Toast {
  readonly id: number
  readonly kind: 'good' | 'bad'
  readonly message: string
  readonly detail?: string
}

/** Milliseconds for which a success message is shown. */
const SHOWN_MS = 5000
/** Maximum number of toasts on the screen. */
const MAX_TOASTS = 4
/** The messages that are shown. */
export const toasts = signal<readonly Toast[]>([])
let last = 0

/** Removes a message. */
export const closeToast = (id: number): void => {
  toasts.value = toasts.value.filter((one) => one.id !== id)
}
function add(toast: Omit<Toast, 'id'>): number {
  const id = ++last
  toasts.value = [...toasts.value, { ...toast, id }].slice(-MAX_TOASTS)
  return id
}

/** Shows a success message for five seconds. */
export function showDone(message: string): void {
  const id = add({ kind: 'good', message })
  setTimeout(() => closeToast(id), SHOWN_MS)
}
/**
 * Shows a failure until the user closes the message or newer messages displace it. A cancelled
 * request is not shown.
 * @param error an `ApiError` with the message from the service, or an error of the console.
 */
export function showError(error: unknown): void {
  if (error instanceof DOMException && error.name === 'AbortError') return
  if (!(error instanceof ApiError)) console.error(error)
  const message = error instanceof Error ? error.message : String(error)
  const faults =
    error instanceof ApiError
      ? error.fields.map(({ field, message: what }) => text.about(field, what)).join('\n')
      : ''
  const request = error instanceof ApiError ? error.requestId : undefined
  const permission = error instanceof ApiError ? error.permission : undefined
  const needs = permission && text.needs(permission)
  const detail = [faults, needs, request && text.request(request)].filter(Boolean).join('\n')
  add({ kind: 'bad', message, ...(detail !== '' && { detail }) })
}

/** Shows a message about a problem that the user can correct, until the user closes the message. */
export function showProblem(message: string): void {
  add({ kind: 'bad', message })
}
