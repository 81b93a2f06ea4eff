/**
 * The stock actions that `baton worker` offers: small, harmless actions for trying out workflows.
 * Invalid parameters cause an exception, whose message becomes the error of the step.
 */
import { format } from 'node:util'
import { json } from './actions/json.ts'
import { random } from './actions/random.ts'
import type { Action, Parameters } from './worker/options.ts'

/** Writes a printf-style line to the worker's log and returns the line. */
const print: Action = ({ message = '', args = [] }, { log }) => {
  const line = format(
    typeof message === 'string' ? message : JSON.stringify(message),
    ...(Array.isArray(args) ? args : [args]),
  )
  log(line)
  return line
}
const fail: Action = ({ message }) => {
  throw new Error(
    typeof message === 'string' && message !== '' ? message : 'This action always fails.',
  )
}
/**
 * Returns the given time in RFC 3339 format: in UTC or, with `utc: false`, in this machine's time
 * zone with its UTC offset.
 */
export const time = ({ utc }: Parameters, now: Date): string => {
  if (utc !== false && utc !== 'false') return now.toISOString()
  const offset = -now.getTimezoneOffset()
  const part = (value: number) => String(Math.floor(Math.abs(value))).padStart(2, '0')
  return (
    new Date(now.getTime() + offset * 60_000).toISOString().slice(0, -1) +
    `${offset < 0 ? '-' : '+'}${part(offset / 60)}:${part(offset % 60)}`
  )
}

export const stockActions: Readonly<Record<string, Action>> = {
  print,
  fail,
  json,
  time: (parameters) => time(parameters, new Date()),
  random: (parameters) => random(parameters),
}
