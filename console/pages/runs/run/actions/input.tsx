/** The editor of an object: a form if its members are declared, otherwise a field for JSON. */

import { useState } from 'preact/hooks'
import { isolate } from '../../../../../client/isolate.ts'
import { getOwn } from '../../../../../protocol/lookup.ts'
import type { FieldFault } from '../../../../api/client.ts'
import { Button } from '../../../../design/button.tsx'
import { SelectField, TextArea, TextField } from '../../../../design/field.tsx'
import { readObject, readValue, writeObject, writeValue } from './json.ts'
import { actionText as text } from './text.ts'

/** The declaration of an input member. */
interface Declared {
  readonly type?: string
  readonly description?: string
  readonly required?: boolean
  readonly default?: unknown
}

const ofField = (faults: readonly FieldFault[], path: string): string | undefined =>
  faults
    .filter(({ field }) => field === path || field.startsWith(`${path}.`))
    .map(({ field, message }) => (field === path ? message : `${field}: ${message}`))
    .join(' ') || undefined

/**
 * A field for a JSON object. `value` is the text as entered, which may be invalid.
 * @param props.path path of the object in the request, such as `input`.
 */
export function ObjectField({
  label,
  path,
  value,
  onValue,
  faults,
  declared,
}: {
  readonly label: string
  readonly path: string
  readonly value: string
  readonly onValue: (value: string) => void
  readonly faults: readonly FieldFault[]
  readonly declared?: Readonly<Record<string, Declared>> | undefined
}) {
  const members = Object.entries(declared ?? {})
  const [asForm, setAsForm] = useState(members.length > 0)
  const typed = readObject(value)
  const object = typed.value
  const form = asForm && members.length > 0 && object !== undefined
  const change = (name: string, member: unknown): void => {
    const { [name]: _, ...rest } = object ?? {}
    onValue(writeObject(member === undefined ? rest : { ...object, [name]: member }))
  }
  return (
    <fieldset class="stack close plain">
      <div class="row apart">
        <legend class="label">{label}</legend>
        {members.length > 0 && (
          <Button
            kind="quiet"
            disabled={!form && object === undefined}
            onClick={() => setAsForm(!form)}
          >
            {form ? text.json : text.form}
          </Button>
        )}
      </div>
      {form ? (
        members.map(([name, member]) => (
          <Member
            key={name}
            name={name}
            declared={member}
            value={getOwn(object, name)}
            onValue={(next) => change(name, next)}
            fault={ofField(faults, `${path}.${name}`)}
          />
        ))
      ) : (
        <TextArea
          label={label}
          unlabelled
          rows={8}
          spellcheck={false}
          value={value}
          onValue={onValue}
          fault={typed.fault ?? ofField(faults, path)}
        />
      )}
    </fieldset>
  )
}

function Member({
  name,
  declared: { type, description, required, default: fallback },
  value,
  onValue,
  fault,
}: {
  readonly name: string
  readonly declared: Declared
  readonly value: unknown
  readonly onValue: (value: unknown) => void
  readonly fault: string | undefined
}) {
  const hint = [
    description && isolate(description),
    required && text.required,
    fallback !== undefined && text.byDefault(writeValue(type, fallback)),
  ]
    .filter(Boolean)
    .join(' · ')
  const shared = { label: name, fault, ...(hint !== '' && { hint }) }
  const shown = writeValue(type, value)
  const read = (typed: string): void => onValue(readValue(type, typed))
  if (type === 'boolean')
    return (
      <SelectField
        {...shared}
        value={shown}
        choices={[
          { value: '', label: text.noValue },
          { value: 'true', label: text.yes },
          { value: 'false', label: text.no },
        ]}
        onValue={read}
      />
    )
  if (type === 'number' || type === 'integer')
    return <TextField {...shared} type="number" step="any" value={shown} onValue={read} />
  return <JsonMember {...shared} type={type} shown={shown} onValue={read} />
}

/**
 * A field for a JSON value. It keeps the text as typed, because converting the text to a value and
 * back can change it. For example, incomplete JSON is read as a string.
 */
function JsonMember({
  type,
  shown,
  onValue,
  ...rest
}: {
  readonly label: string
  readonly fault: string | undefined
  readonly hint?: string
  readonly type: string | undefined
  readonly shown: string
  readonly onValue: (typed: string) => void
}) {
  const [typed, setTyped] = useState(shown)
  const change = (next: string): void => {
    setTyped(next)
    onValue(next)
  }
  return type === 'object' || type === 'array' || typed.includes('\n') ? (
    <TextArea {...rest} rows={2} spellcheck={false} value={typed} onValue={change} />
  ) : (
    <TextField {...rest} value={typed} onValue={change} />
  )
}
