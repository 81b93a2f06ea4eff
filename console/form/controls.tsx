/** The controls of a form that is derived from a JSON Schema, one per kind of value. */

import { useEffect, useState } from 'preact/hooks'
import { getOwn } from '../../protocol/lookup.ts'
import { isJsonObject } from '../../protocol/rules/json-object.ts'
import { below } from '../../protocol/rules/workflow-check/path.ts'
import { Button, IconButton } from '../design/button.tsx'
import { Checkbox, Field, SelectField, TextArea, TextField } from '../design/field.tsx'
import { Editor } from '../editor/editor.tsx'
import { faultsBelow } from '../editor/faults.ts'
import type { Schema } from '../editor/suggestions.ts'
import { initialOf, type Plan } from './plan.ts'
import type { FormState } from './state.ts'
import { formText as text } from './text.ts'
import { faultAt, localTime, numberOf, utcTime, withMember } from './value.ts'

interface ControlProps<P extends Plan = Plan> {
  readonly form: FormState
  readonly plan: P
  readonly value: unknown
  /** Path of the value; '' for the whole value. */
  readonly path: string
  readonly required: boolean
  readonly onValue: (value: unknown) => void
}
type Of<K extends Plan['control']> = Extract<Plan, { readonly control: K }>

const named = (plan: Plan, required: boolean): string =>
  required ? text.needed(plan.label) : plan.label

/** The form control of one value, of the kind that its plan specifies. */
export function Control(props: ControlProps) {
  const { form, plan, value, path, required, onValue } = props
  const fault = faultAt(form.faults, path)
  const field = { label: named(plan, required), hint: plan.hint, fault, required }
  const shown = typeof value === 'string' ? value : value === undefined ? '' : JSON.stringify(value)
  const asText = (next: string): void => onValue(next === '' ? undefined : next)
  switch (plan.control) {
    case 'object':
      return <ObjectControl {...props} plan={plan} />
    case 'list':
      return <ListControl {...props} plan={plan} />
    case 'json':
      return <JsonControl {...props} plan={plan} />
    case 'choice': {
      const at = plan.choices.findIndex(
        (one) => JSON.stringify(one.value) === JSON.stringify(value),
      )
      return (
        <SelectField
          {...field}
          value={at < 0 ? '' : String(at)}
          choices={[
            ...(required && at >= 0 ? [] : [{ value: '', label: text.notSet }]),
            ...plan.choices.map(({ label }, index) => ({ value: String(index), label })),
          ]}
          onValue={(index) =>
            onValue(index === '' ? undefined : plan.choices[Number(index)]?.value)
          }
        />
      )
    }
    case 'choices': {
      const chosen = Array.isArray(value) ? (value as unknown[]) : []
      const deep = faultAt(form.faults, path, true)
      return (
        <fieldset class="form-part" aria-invalid={deep !== undefined}>
          <legend>{field.label}</legend>
          {plan.hint && <p class="small soft user-text">{plan.hint}</p>}
          {plan.choices.map(({ value: one, label }) => (
            <Checkbox
              key={label}
              label={<span class="user-text">{label}</span>}
              checked={chosen.includes(one)}
              onChecked={(checked) => {
                const next = plan.choices
                  .map((choice) => choice.value)
                  .filter((choice) => (choice === one ? checked : chosen.includes(choice)))
                onValue(next.length === 0 && !required ? undefined : next)
              }}
            />
          ))}
          {deep && <p class="fault small">{deep}</p>}
        </fieldset>
      )
    }
    case 'boolean':
      return required || plan.initial !== undefined ? (
        <div class="field">
          <Checkbox
            label={<span class="user-text">{plan.label}</span>}
            checked={value === true}
            onChecked={onValue}
          />
          {plan.hint && <div class="hint user-text">{plan.hint}</div>}
          {fault && <div class="fault">{fault}</div>}
        </div>
      ) : (
        <SelectField
          {...field}
          value={typeof value === 'boolean' ? String(value) : ''}
          choices={[
            { value: '', label: text.notSet },
            { value: 'true', label: text.yes },
            { value: 'false', label: text.no },
          ]}
          onValue={(next) => onValue(next === '' ? undefined : next === 'true')}
        />
      )
    case 'number':
      return <NumberControl {...props} plan={plan} />
    case 'long':
      return <TextArea {...field} rows={1} value={shown} onValue={asText} />
    case 'date-time':
      return (
        <TextField
          {...field}
          type="datetime-local"
          value={localTime(shown)}
          onValue={(next) => onValue(utcTime(next))}
        />
      )
    default:
      return <TextField {...field} type={plan.control} value={shown} onValue={asText} />
  }
}

function NumberControl({ form, plan, value, path, required, onValue }: ControlProps) {
  const [written, setWritten] = useState(value === undefined ? '' : String(value))
  // Input such as `1.` is preserved during editing. Otherwise, it would be replaced with its
  // formatted value, `1`.
  const shown =
    numberOf(written) === value ? written : value === undefined ? '' : String(value as number)
  return (
    <Field
      label={named(plan, required)}
      hint={plan.hint}
      fault={faultAt(form.faults, path)}
      control={(props) => (
        <input
          {...props}
          inputMode={plan.schema['type'] === 'integer' ? 'numeric' : 'decimal'}
          aria-required={required}
          autocomplete="off"
          value={shown}
          onInput={({ currentTarget }) => {
            setWritten(currentTarget.value)
            onValue(numberOf(currentTarget.value))
          }}
        />
      )}
    />
  )
}

function ObjectControl({ form, plan, value, path, required, onValue }: ControlProps<Of<'object'>>) {
  const members = plan.members.map(({ name, required: needed, plan: member }) => (
    <Control
      key={name}
      form={form}
      plan={member}
      value={isJsonObject(value) ? getOwn(value, name) : undefined}
      path={below(path, name)}
      required={needed}
      onValue={(next) => {
        const changed = withMember(value, name, next)
        // An optional object without members is omitted.
        const isAbsent = !required && path !== '' && Object.keys(changed).length === 0
        onValue(isAbsent ? undefined : changed)
      }}
    />
  ))
  if (path === '') return <div class="stack">{members}</div>
  const fault = faultAt(form.faults, path)
  return (
    <fieldset class="form-part" aria-invalid={fault !== undefined}>
      <legend class="user-text">{named(plan, required)}</legend>
      {plan.hint && <p class="small soft user-text">{plan.hint}</p>}
      {fault && <p class="fault small">{fault}</p>}
      {members}
    </fieldset>
  )
}

function ListControl({ form, plan, value, path, required, onValue }: ControlProps<Of<'list'>>) {
  const items = Array.isArray(value) ? (value as unknown[]) : []
  const fault = faultAt(form.faults, path)
  const change = (next: readonly unknown[]): void =>
    onValue(next.length === 0 && !required ? undefined : next)
  const empty = (): unknown =>
    initialOf(plan.item) ??
    { object: {}, list: [], choices: [], text: '', long: '' }[plan.item.control as 'text'] ??
    null
  return (
    <fieldset class="form-part" aria-invalid={fault !== undefined}>
      <legend class="user-text">{named(plan, required)}</legend>
      {plan.hint && <p class="small soft user-text">{plan.hint}</p>}
      {fault && <p class="fault small">{fault}</p>}
      {items.map((item, index) => (
        <div class="form-item" key={index}>
          <div class="grow">
            <Control
              form={form}
              plan={{ ...plan.item, label: plan.item.label || text.item(index + 1) }}
              value={item === null && plan.item.control !== 'json' ? undefined : item}
              path={below(path, index)}
              required={false}
              onValue={(next) => {
                const cleared = plan.item.control === 'object' ? {} : empty()
                change(items.map((one, at) => (at === index ? (next ?? cleared) : one)))
              }}
            />
          </div>
          <IconButton
            icon="trash"
            label={text.removeItem(index + 1)}
            onClick={() => change(items.filter((_, at) => at !== index))}
          />
        </div>
      ))}
      {(plan.most === undefined || items.length < plan.most) && (
        <div>
          <Button icon="plus" onClick={() => change([...items, empty()])}>
            {text.addItem}
          </Button>
        </div>
      )}
    </fieldset>
  )
}

function JsonControl({ form, plan, value, path, required, onValue }: ControlProps) {
  const [written, setWritten] = useState<string>()
  const source = value === undefined ? '' : JSON.stringify(value, undefined, 2)
  useEffect(() => () => form.setBroken(path, undefined), [path])
  const label = named(plan, required)
  return (
    <div class="field">
      <div class="label user-text">{label}</div>
      <Editor
        label={label}
        language="json"
        rows={3}
        value={written ?? source}
        schema={plan.schema as Schema}
        faults={faultsBelow(form.faults, path)}
        onValue={(next) => {
          setWritten(next)
          try {
            onValue(next.trim() === '' ? undefined : JSON.parse(next))
            form.setBroken(path, undefined)
          } catch {
            form.setBroken(path, text.notJson)
          }
        }}
      />
      {plan.hint && <div class="hint user-text">{plan.hint}</div>}
    </div>
  )
}
