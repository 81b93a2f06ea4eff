/**
 * A form that is derived from a JSON Schema. Its value can also be edited as JSON. `useForm` in
 * `state.ts` creates its state.
 */
import { useEffect, useRef } from 'preact/hooks'
import { Notice } from '../design/states.tsx'
import { Editor } from '../editor/editor.tsx'
import type { Schema } from '../editor/suggestions.ts'
import { Control } from './controls.tsx'
import type { FormState } from './state.ts'
import { formText as text } from './text.ts'
import { unshownFaults } from './value.ts'

/** Shows a form. `label` is its name for screen readers and in the editor. */
export function SchemaForm({ form, label }: { readonly form: FormState; readonly label: string }) {
  const frame = useRef<HTMLDivElement>(null)
  const { plan, value, asJson, mayChoose, faults, attempts } = form
  useEffect(() => {
    if (attempts > 0)
      frame.current?.querySelector<HTMLElement>('[aria-invalid=true], .cm-content')?.focus()
  }, [attempts])
  const others = asJson ? [] : unshownFaults(faults, plan, value)
  return (
    <div ref={frame} class="schema-form stack" role="group" aria-label={label}>
      {mayChoose && (
        <div class="form-mode" role="group" aria-label={text.editAs}>
          {[false, true].map((json) => (
            <button
              key={String(json)}
              type="button"
              aria-pressed={asJson === json}
              onClick={() => form.setJson(json)}
            >
              {json ? text.json : text.form}
            </button>
          ))}
        </div>
      )}
      {others.length > 0 && (
        <Notice tone="bad">
          {others.map(({ field, message }) => (
            <div key={`${field} ${message}`} class="user-text">
              {field === '' ? message : `${field}: ${message}`}
            </div>
          ))}
        </Notice>
      )}
      {asJson ? (
        <Editor
          label={label}
          language="json"
          value={form.source}
          onValue={form.setSource}
          schema={form.schema as Schema}
          faults={faults}
          rows={6}
        />
      ) : (
        <Control form={form} plan={plan} value={value} path="" required onValue={form.setValue} />
      )}
    </div>
  )
}
