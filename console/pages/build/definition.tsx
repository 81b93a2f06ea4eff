/**
 * The editor of a definition in JSON or YAML. It also shows the graph of the definition, the faults
 * found while the user types, and the changes since the last saved version.
 */
import { useState } from 'preact/hooks'
import type { Spec } from '../../../protocol/workflows/spec.ts'
import { ApiError, type FieldFault } from '../../api/client.ts'
import { Button } from '../../design/button.tsx'
import { showError, showProblem } from '../../design/notify.ts'
import { Confirm } from '../../design/overlay.tsx'
import { Badge, Notice } from '../../design/states.tsx'
import { Differences } from '../../editor/differences.tsx'
import { Editor } from '../../editor/editor.tsx'
import { faultsBelow, faultsOfText, type ValueCheck } from '../../editor/faults.ts'
import { LanguageChoice } from '../../editor/language.tsx'
import { locate } from '../../editor/located.ts'
import type { Schema } from '../../editor/suggestions.ts'
import { editorText } from '../../editor/text.ts'
import { WorkflowGraph } from '../../graph/graph.tsx'
import { useDefinition } from './draft.ts'
import { buildText as text } from './text.ts'

type Steps = Pick<Spec, 'steps' | 'cleanup'>
const stepsOf = (value: unknown): Steps | undefined => {
  const { steps, cleanup } = (value ?? {}) as Partial<Steps>
  return Array.isArray(steps) && steps.length > 0
    ? { steps, ...(cleanup !== undefined && { cleanup }) }
    : undefined
}
const none: readonly FieldFault[] = []

/** Shows the editor. Unsaved changes are kept as a draft in the browser. */
export function DefinitionEditor({
  draftKey,
  saved,
  version,
  newer,
  schema,
  check,
  root = '',
  editable,
  onSave,
}: {
  readonly draftKey: string
  readonly saved: unknown
  /** Identifies the saved version of the definition. */
  readonly version: string
  /** Message that is shown if a newer version was saved after editing began. */
  readonly newer: string
  readonly schema: Schema
  readonly check: ValueCheck
  /** Path of the definition in requests, such as `spec`. */
  readonly root?: string
  readonly editable: boolean
  /**
   * Saves the definition, and returns its new version. If the service refuses it, the faults are
   * marked in the text.
   */
  readonly onSave: (value: unknown) => Promise<string>
}) {
  const definition = useDefinition(draftKey, saved, version)
  const [faultCount, setFaultCount] = useState(0)
  const [reported, setReported] = useState(none)
  const [steps, setSteps] = useState(() => stepsOf(saved))
  const [compares, setCompares] = useState(false)
  const [asks, setAsks] = useState(false)
  const { isChanged, isOutdated, language } = definition
  const save = async (): Promise<void> => {
    if (!isChanged || !editable) return
    if (isOutdated) return showProblem(newer)
    // The editor checks with a delay, so it may not have checked the last change.
    if (faultsOfText(definition.text, language, check).length > 0) return showProblem(text.fixFirst)
    try {
      definition.settle(await onSave(definition.read()))
      setReported(none)
      setCompares(false)
    } catch (error) {
      const below = error instanceof ApiError ? faultsBelow(error.fields, root) : none
      setReported(below)
      if (below.length === 0) throw error
      setCompares(false)
    }
  }
  const titleOf = (): string => {
    if (!isChanged) return text.nothingToSave
    if (isOutdated) return newer
    return faultCount > 0 ? text.fixFirst : text.save
  }
  const graph = steps && <WorkflowGraph spec={steps} height="min(65vh, 40rem)" />
  return (
    <div class="stack">
      <div class="row apart">
        <div class="row">
          <LanguageChoice
            language={language}
            onLanguage={(next) => {
              if (!definition.setLanguage(next)) showProblem(editorText.notConverted)
            }}
          />
          {isChanged && <Badge tone="warn">{text.unsaved}</Badge>}
        </div>
        {editable && (
          <div class="row">
            {isChanged && (
              <>
                <Button kind="quiet" onClick={() => setCompares(!compares)}>
                  {compares ? text.hideChanges : text.showChanges}
                </Button>
                <Button kind="quiet" onClick={() => setAsks(true)}>
                  {text.discard}
                </Button>
              </>
            )}
            <Button
              kind="primary"
              icon="check"
              disabled={!isChanged || isOutdated || faultCount > 0}
              title={titleOf()}
              onClick={save}
            >
              {text.save}
            </Button>
          </div>
        )}
      </div>
      {isOutdated && (
        <Notice tone="warn">
          <p>{newer}</p>
          <div class="row">
            <Button onClick={() => setCompares(true)}>{text.showChanges}</Button>
            <Button onClick={definition.keep}>{text.takeOver}</Button>
            <Button onClick={() => setAsks(true)}>{text.discard}</Button>
          </div>
        </Notice>
      )}
      {compares && isChanged ? (
        <Differences before={definition.savedText} after={definition.text} language={language} />
      ) : (
        <div class="definition">
          <Editor
            label={text.definition}
            language={language}
            value={definition.text}
            readOnly={!editable}
            schema={schema}
            check={check}
            faults={reported}
            rows={20}
            onValue={(next) => {
              setReported(none)
              definition.setText(next)
            }}
            onFaults={(found) => {
              setFaultCount(found.length)
              if (found.length > 0) return
              const read = locate(definition.text, language)
              if ('value' in read) setSteps(stepsOf(read.value))
            }}
            onSubmit={() => void save().catch(showError)}
          />
          <section class="definition-graph" aria-label={text.graph}>
            {graph ?? <p class="soft small">{text.graphLater}</p>}
          </section>
        </div>
      )}
      {asks && (
        <Confirm
          title={text.discardQuestion}
          action={text.discard}
          danger
          onClose={() => setAsks(false)}
          onConfirm={() => {
            definition.discard()
            setReported(none)
            setCompares(false)
          }}
        >
          <p>{text.discardHint}</p>
        </Confirm>
      )}
    </div>
  )
}
