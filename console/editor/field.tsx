/** A form field whose control is an editor for JSON. */
import type { FieldFault } from '../api/client.ts'
import { Editor, type EditorProps } from './editor.tsx'
import { faultsBelow } from './faults.ts'

/** Lays out an editor for JSON with its label and hint. */
export const JsonField = ({
  label,
  hint,
  path,
  faults,
  ...editor
}: Omit<EditorProps, 'language' | 'hint' | 'faults'> & {
  readonly hint?: string
  /** Path of the value in the request. */
  readonly path: string
  /** The faults of the request. The editor shows those at `path` and below. */
  readonly faults: readonly FieldFault[]
}) => (
  <div class="field">
    <div class="label">{label}</div>
    <Editor {...editor} label={label} language="json" faults={faultsBelow(faults, path)} />
    {hint !== undefined && <div class="hint">{hint}</div>}
  </div>
)
