/** Events of a timeline as lines for a person. */
import type { RunEventRecord } from '../../protocol/api/runs.ts'

/** Payload members that the line says already, or that only programs want. */
const silent: ReadonlySet<string> = new Set(['step', 'kind', 'wait_id', 'subject', 'status', 'run_id', 'definition_id', 'definition_version', 'source', 'job_id'])
const LONGEST = 110

/** One line: the time, what happened, to which step, and the details that fit. */
export function lineOf({ created_at, event_type, step_key, payload }: RunEventRecord): string {
  const details = Object.entries(payload ?? {}).filter(([name]) => !silent.has(name)).map(([name, value]) => `${name}=${shown(value)}`).join(' ')
  return `${created_at.slice(11, 23)}  ${event_type.padEnd(16)}  ${(step_key ?? '').padEnd(12)}  ${clipped(details, LONGEST)}`.trimEnd()
}
const shown = (value: unknown): string => (typeof value === 'string' ? (/^[\w.:/-]*$/.test(value) ? value : JSON.stringify(value)) : JSON.stringify(value))
const clipped = (text: string, most: number): string => (text.length > most ? `${text.slice(0, most - 1)}…` : text)
