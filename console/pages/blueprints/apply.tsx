/** Applies a blueprint from files: shows the plan first, and then applies exactly that plan. */
import { useEffect, useState } from 'preact/hooks'
import { Button, LinkButton } from '../../design/button.tsx'
import { TextArea } from '../../design/field.tsx'
import { showError } from '../../design/notify.ts'
import { Failure, Notice } from '../../design/states.tsx'
import { useLeaveQuestion } from '../../form/unsaved.ts'
import { loadPart } from '../../router/part.ts'
import { Page, type PageProps } from '../../shell/page.tsx'
import { groupHref } from './groups.ts'
import { type Choices, Options } from './options.tsx'
import { Plan } from './plan.tsx'
import { Progress } from './progress.tsx'
import type { ReadFiles, UploadedFile } from './read-files.ts'
import { blueprintsText as text } from './text.ts'
import { Upload } from './upload.tsx'
import { useApply } from './use-apply.ts'

/** Maximum number of faults of the files that are listed. */
const MAX_SHOWN_FAULTS = 50

/**
 * Reads the files whenever the files or the variables change. Returns undefined until they have
 * been read.
 */
function useRead(files: readonly UploadedFile[], variables: string): ReadFiles | undefined {
  const [read, setRead] = useState<ReadFiles>()
  useEffect(() => {
    let isWanted = true
    setRead(undefined)
    if (files.length > 0)
      loadPart('read-files', () => import('./read-files.ts')).then(({ readFiles, variablesOf }) => {
        if (isWanted) setRead(readFiles(files, variablesOf(variables)))
      }, showError)
    return () => {
      isWanted = false
    }
  }, [files, variables])
  return read
}

export default function ApplyPage({ params }: PageProps) {
  const project = params['project'] ?? ''
  const base = `/p/${encodeURIComponent(project)}/blueprints`
  const [files, setFiles] = useState<readonly UploadedFile[]>([])
  const [variables, setVariables] = useState('')
  const [choices, setChoices] = useState<Choices>({ at: 0, protect: '', prune: false })
  const read = useRead(files, variables)
  const blueprint = read?.blueprints[choices.at]
  const isReady = blueprint !== undefined && read?.faults.length === 0
  const { step, error, plan, apply } = useApply(
    project,
    isReady ? blueprint.request : undefined,
    choices,
  )
  useLeaveQuestion(files.length > 0 && step.kind !== 'applied')

  const identity = {
    namespace: blueprint?.request.namespace ?? '',
    key: blueprint?.request.blueprint_key ?? '',
  }
  const changes = 'result' in step ? step.result.changes : []
  const isDone = step.kind === 'applied'
  const willChange = changes.some(({ action }) => action !== 'unchanged')
  const deleted = changes.filter(({ action }) => action === 'deleted').length
  const field = error?.details['field']
  const place = typeof field === 'string' ? blueprint?.placeOf(field) : undefined
  return (
    <Page title={text.applyTitle} crumbs={[{ label: text.back, href: base }]}>
      <Upload
        count={files.length}
        onFiles={(next) => {
          setFiles(next)
          setChoices({ ...choices, at: 0 })
        }}
      />
      {files.length > 0 && (
        <details>
          <summary>{text.variables}</summary>
          <TextArea
            label={text.variables}
            unlabelled
            hint={text.variablesHint}
            rows={2}
            spellcheck={false}
            value={variables}
            onValue={setVariables}
          />
        </details>
      )}
      {read && read.faults.length > 0 && <FileFaults faults={read.faults} />}
      {isReady && read && (
        <Options blueprints={read.blueprints} choices={choices} onChoices={setChoices} />
      )}
      {error && <Failure error={error} />}
      {place !== undefined && <p class="mono user-text">{text.at(place)}</p>}
      {step.kind === 'planning' && <p role="status">{text.planning}</p>}
      <div class="row">
        {step.kind === 'planned' && (
          <Button kind="primary" disabled={!willChange} onClick={() => apply(step.result)}>
            {text.applyPlan}
          </Button>
        )}
        {isReady && (step.kind === 'none' || step.kind === 'planned' || isDone) && (
          <Button icon="reload" onClick={plan}>
            {text.planAgain}
          </Button>
        )}
        {isDone && <LinkButton href={groupHref(project, identity)}>{text.showIt}</LinkButton>}
      </div>
      {'result' in step && (
        <section class="stack">
          <h2>
            {isDone ? text.applied : text.plan} <span class="user-text">{identity.key}</span>
          </h2>
          {step.kind === 'applying' && (
            <Progress project={project} identity={identity} plan={step.result} />
          )}
          <Plan of={step.result} prune={choices.prune} />
          {deleted > 0 && !isDone && <Notice tone="warn">{text.deletes(deleted)}</Notice>}
        </section>
      )}
    </Page>
  )
}

const FileFaults = ({ faults }: Pick<ReadFiles, 'faults'>) => (
  <Notice tone="bad">
    <strong>{text.faults}</strong>
    <ul class="mono small">
      {faults.slice(0, MAX_SHOWN_FAULTS).map((fault) => (
        <li key={fault} class="user-text">
          {fault}
        </li>
      ))}
    </ul>
  </Notice>
)
