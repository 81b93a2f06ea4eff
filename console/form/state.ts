/**
 * The state of a form that is derived from a JSON Schema: its value, whether the value is edited as
 * JSON, and its faults.
 */
import { useMemo, useState } from 'preact/hooks'
import { isJsonObject } from '../../protocol/rules/json-object.ts'
import { checkValue } from '../../protocol/rules/json-schema/validate.ts'
import type { FieldFault } from '../api/client.ts'
import { faultsBelow } from '../editor/faults.ts'
import { type FormSchema, initialOf, type Plan, planOf } from './plan.ts'
import { formText as text } from './text.ts'
import { canShow } from './value.ts'

/** A form that a page shows with `SchemaForm`. */
export interface FormState {
  readonly plan: Plan
  readonly schema: FormSchema
  readonly value: unknown
  /** Whether the value is edited as JSON; always true if there are no controls for it. */
  readonly asJson: boolean
  readonly mayChoose: boolean
  /**
   * The text in the JSON editor: the entered text or, if nothing was entered, the value as JSON.
   */
  readonly source: string
  /** Faults, with paths relative to the value. */
  readonly faults: readonly FieldFault[]
  /** Increases with each refused attempt, so that the first fault receives the focus. */
  readonly attempts: number
  setValue(value: unknown): void
  setSource(source: string): void
  setJson(asJson: boolean): void
  /** Sets the fault of a part whose JSON text cannot be parsed. Undefined clears it. */
  setBroken(path: string, message: string | undefined): void
  /**
   * Returns the value if it matches the schema. Otherwise shows the faults and returns undefined.
   */
  take(): { readonly value: unknown } | undefined
  /** Shows the faults that the service reported for the value at `root` of the request. */
  report(faults: readonly FieldFault[], root: string): void
}

const written = (value: unknown): string =>
  value === undefined ? '' : JSON.stringify(value, undefined, 2)

/**
 * Returns the value of a form after its schema has changed, for example because the workflow was
 * saved. Entered members are kept if the new schema also declares them.
 */
function keptValue(entered: unknown, { properties }: FormSchema, start: unknown): unknown {
  if (!isJsonObject(entered) || !isJsonObject(start) || !isJsonObject(properties)) return start
  const kept = Object.entries(entered).filter(([name]) => Object.hasOwn(properties, name))
  return { ...start, ...Object.fromEntries(kept) }
}

/**
 * Creates the state of a form.
 * @param schema undefined means any object.
 * @param first initial value, in place of the defaults of the schema.
 */
export function useForm(schema: FormSchema | undefined, first?: unknown): FormState {
  const known = useMemo(() => schema ?? { type: 'object' }, [JSON.stringify(schema)])
  const plan = useMemo(() => planOf(known, ''), [known])
  const start = useMemo(() => first ?? initialOf(plan) ?? {}, [plan])
  const [edited, setEdited] = useState<{ readonly of: Plan; readonly value: unknown }>()
  const shownValue = (): unknown => {
    if (!edited) return start
    return edited.of === plan ? edited.value : keptValue(edited.value, known, start)
  }
  const value = shownValue()
  const mayChoose = plan.control === 'object'
  const [wantsJson, setWantsJson] = useState(false)
  const [source, setSource] = useState<string>()
  const [broken, setBroken] = useState<Readonly<Record<string, string>>>({})
  const [faults, setFaults] = useState<readonly FieldFault[]>([])
  const [attempts, setAttempts] = useState(0)
  const asJson = !mayChoose || wantsJson
  const shown = source ?? written(value)
  const refuse = (found: readonly FieldFault[]): undefined => {
    setFaults(found)
    setAttempts((count) => count + 1)
    return undefined
  }
  return {
    plan,
    schema: known,
    value,
    asJson,
    mayChoose,
    source: shown,
    faults,
    attempts,
    setValue: (next) => {
      setEdited({ of: plan, value: next })
      setSource(undefined)
    },
    setSource: (next) => {
      setSource(next)
      setFaults([])
      try {
        setEdited({ of: plan, value: next.trim() === '' ? undefined : JSON.parse(next) })
      } catch {
        // The text stays unchanged, and `take` refuses it.
      }
    },
    setJson: (next) => {
      if (!next && source !== undefined) {
        try {
          const read: unknown = source.trim() === '' ? {} : JSON.parse(source)
          if (!canShow(plan, read)) return void refuse([{ field: '', message: text.notShown }])
          setEdited({ of: plan, value: read })
          setSource(undefined)
        } catch {
          return void refuse([{ field: '', message: text.notJson }])
        }
      }
      setFaults([])
      setWantsJson(next)
    },
    setBroken: (path, message) =>
      setBroken(({ [path]: _, ...rest }) =>
        message === undefined ? rest : { ...rest, [path]: message },
      ),
    take: () => {
      let given = value
      if (asJson && source !== undefined) {
        try {
          given = source.trim() === '' ? {} : JSON.parse(source)
        } catch {
          return refuse([{ field: '', message: text.notJson }])
        }
      } else {
        const unread = Object.entries(broken).map(([field, message]) => ({ field, message }))
        if (unread.length > 0) return refuse(unread)
      }
      const checked = checkValue(known, given ?? {}, '')
      if ('faults' in checked && checked.faults.length > 0) return refuse(checked.faults)
      setFaults([])
      return { value: given ?? {} }
    },
    report: (reported, root) => refuse(faultsBelow(reported, root)),
  }
}
