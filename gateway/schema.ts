/**
 * Checking values against schemas that users gave. The schema is interpreted, never made into code; what it asks for may still
 * be endless work (a pattern, a reference to itself), so a check has a time after which it is given up.
 */
import { Script, createContext } from 'node:vm'
import { Validator, type Schema } from '@cfworker/json-schema'
import { Meta } from 'typebox/schema'
import type { FieldError } from '../protocol/errors.ts'
import { member } from './explain.ts'

/** Milliseconds that a check may take, and faults that are named. */
const PATIENCE = 100
const MOST = 20
/** What a schema looks like: that of draft 7, which says the same of all keywords that later drafts kept, for `$defs` too. */
const SEVEN = Meta['http://json-schema.org/draft-07/schema#'] as object as {
  readonly properties: Readonly<Record<string, object>>
}
const SCHEMA = {
  ...SEVEN,
  properties: { ...SEVEN.properties, $defs: SEVEN.properties['definitions'] },
}
/** Runs what it is given: a script is the only thing that can be stopped, and it stops whatever it calls. */
const script = new Script('check()')

type Checked = ReturnType<Validator['validate']> | { readonly unusable: string }
function check(schema: object, value: unknown): Checked {
  const validate = () => new Validator(schema as Schema, '2020-12', false).validate(value)
  try {
    return script.runInContext(createContext({ check: validate }), { timeout: PATIENCE }) as Checked
  } catch (error) {
    const late = (error as { code?: unknown } | null)?.code === 'ERR_SCRIPT_EXECUTION_TIMEOUT'
    return {
      unusable: late
        ? `a value cannot be checked within ${PATIENCE} ms`
        : `cannot be used: ${error instanceof Error ? error.message.slice(0, 200) : 'it is no schema'}`,
    }
  }
}

/** Why a schema cannot be used at all: it is none, or has a reference to nothing. @param field where it stands. */
export function unusable(schema: object, field: string): FieldError | undefined {
  const [fault] = faultsOf(SCHEMA, schema, field)
  if (fault) return fault
  const checked = check(schema, {})
  return 'unusable' in checked ? { field, message: checked.unusable } : undefined
}

/** Every fault of a value, at most 20. @param path where the value stands. */
export function faultsOf(schema: object, value: unknown, path: string): FieldError[] {
  const checked = check(schema, value)
  if ('unusable' in checked)
    return [
      { field: path, message: `does not agree with the schema of the action: ${checked.unusable}` },
    ]
  if (checked.valid) return []
  // A place that holds faulty places is faulty itself; the innermost ones say why, and what is missing has no place of its own.
  const { errors } = checked
  const faults = errors.filter(
    (error) =>
      isMissing(error) ||
      !errors.some((other) => other.instanceLocation.startsWith(`${error.instanceLocation}/`)),
  )
  return faults.slice(0, MOST).map((error) => faultOf(error, path))
}
type Fault = ReturnType<Validator['validate']>['errors'][number]
/** Of a choice, what one branch requires may be missing. */
const isMissing = ({ keyword, keywordLocation }: Fault): boolean =>
  keyword === 'required' && !/\/(anyOf|oneOf|not|if)(\/|$)/.test(keywordLocation)
/** In the words of all refusals, where those of the validator are about schemas. */
function faultOf({ instanceLocation, keyword, error }: Fault, path: string): FieldError {
  const field = placeOf(path, instanceLocation)
  const [, missing] = keyword === 'required' ? (/"(.*)"\.$/s.exec(error) ?? []) : []
  if (missing !== undefined) return { field: member(field, missing), message: 'is required' }
  return { field, message: keyword === 'false' ? 'is not a known field' : error }
}
/** A JSON pointer of the value (`#/a/0`) as a path of the request. */
function placeOf(path: string, pointer: string): string {
  const parts = pointer
    .split('/')
    .slice(1)
    .map((part) => decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~'))
  return parts.reduce(
    (at, part) => member(at, /^(0|[1-9]\d*)$/.test(part) ? Number(part) : part),
    path,
  )
}
