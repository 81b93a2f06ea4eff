/** Applies a blueprint from files: shows the plan first, and then applies exactly that plan. */
import { useEffect, useState } from 'preact/hooks'
import type { ApplyResult } from '../../../protocol/blueprints/schema.ts'
import { ApiError, call } from '../../api/client.ts'
import { Button, LinkButton } from '../../design/button.tsx'
import { Checkbox, SelectField, TextArea } from '../../design/field.tsx'
import { showError } from '../../design/notify.ts'
import { Failure, Notice } from '../../design/states.tsx'
import { useLeaveQuestion } from '../../form/unsaved.ts'
import { loadPart } from '../../router/part.ts'
import { Page, type PageProps } from '../../shell/page.tsx'
import { groupHref } from './groups.ts'
import { Plan } from './plan.tsx'
import { Progress } from './progress.tsx'
import type { ReadFiles, UploadedFile } from './read-files.ts'
import { blueprintsText as text } from './text.ts'
import { Upload } from './upload.tsx'

/** The additions that the console requests with a plan. */
const INCLUDED = ['plan', 'drift', 'orphans', 'further_types'] as const

interface Choices {
  /** Index of the selected blueprint among those in the files. */
  readonly at: number
  readonly protect: '' | 'on' | 'off'
  readonly prune: boolean
}
type Step =
  | { readonly kind: 'none' | 'planning' }
  | { readonly kind: 'planned' | 'applying' | 'applied'; readonly result: ApplyResult }

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
  const [step, setStep] = useState<Step>({ kind: 'none' })
  const [error, setError] = useState<ApiError>()
  const read = useRead(files, variables)
  const blueprint = read?.blueprints[choices.at]
  useLeaveQuestion(files.length > 0 && step.kind !== 'applied')
  const isReady = blueprint !== undefined && read?.faults.length === 0

  const send = async (more: { mode: 'preview' | 'apply'; plan_id?: string }) =>
    call('blueprint.apply', {
      project,
      include: [...INCLUDED],
      ...(blueprint?.request as NonNullable<typeof blueprint>['request']),
      ...(choices.protect !== '' && { protect_resources: choices.protect === 'on' }),
      ...(choices.prune && { prune: true }),
      ...more,
    })
  /**
   * Shows the step `running` during the request `after`, and then the step that `after` returns. If
   * the request fails, shows the step `failed`, with the error if the service returned it.
   */
  const attempt = async (running: Step, after: () => Promise<Step>, failed: Step) => {
    setStep(running)
    setError(undefined)
    try {
      setStep(await after())
    } catch (failure) {
      setStep(failed)
      if (!(failure instanceof ApiError)) throw failure
      setError(failure)
    }
  }
  const plan = () =>
    attempt(
      { kind: 'planning' },
      async () => ({ kind: 'planned', result: await send({ mode: 'preview' }) }),
      { kind: 'none' },
    )
  const apply = (planned: ApplyResult) =>
    attempt(
      { kind: 'applying', result: planned },
      async () => ({
        kind: 'applied',
        result: await send({
          mode: 'apply',
          ...(planned.plan_id !== undefined && { plan_id: planned.plan_id }),
        }),
      }),
      { kind: 'planned', result: planned },
    )
  // A plan is valid only for the files and choices from which it was made, so a new plan is
  // requested when they change.
  useEffect(() => {
    setStep({ kind: 'none' })
    setError(undefined)
    if (isReady) void plan()
  }, [read, choices])

  const identity = {
    namespace: blueprint?.request.namespace ?? '',
    key: blueprint?.request.blueprint_key ?? '',
  }
  const nameOf = ({ request }: NonNullable<typeof blueprint>) =>
    [request.namespace, request.blueprint_key].filter(Boolean).join(' / ') || text.unnamed
  const changes = 'result' in step ? step.result.changes : []
  const isDone = step.kind === 'applied'
  const willChange = changes.some(({ action }) => action !== 'unchanged')
  const deleted = changes.filter(({ action }) => action === 'deleted').length
  const fault = error?.details['field']
  const place = typeof fault === 'string' ? blueprint?.placeOf(fault) : undefined
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
      {read && read.faults.length > 0 && (
        <Notice tone="bad">
          <strong>{text.faults}</strong>
          <ul class="mono small">
            {read.faults.slice(0, 50).map((one) => (
              <li key={one} class="user-text">
                {one}
              </li>
            ))}
          </ul>
        </Notice>
      )}
      {isReady && read && (
        <section class="options" aria-label={text.options}>
          {read.blueprints.length > 1 && (
            <SelectField
              label={text.which}
              hint={text.whichHint}
              choices={read.blueprints.map((one, at) => ({
                value: String(at),
                label: nameOf(one),
              }))}
              value={String(choices.at)}
              onValue={(at) => setChoices({ ...choices, at: Number(at) })}
            />
          )}
          <SelectField
            label={text.protectOption}
            choices={[
              { value: '', label: text.protectKeep },
              { value: 'on', label: text.protectOn },
              { value: 'off', label: text.protectOff },
            ]}
            value={choices.protect}
            onValue={(protect) =>
              setChoices({ ...choices, protect: protect as Choices['protect'] })
            }
          />
          <Checkbox
            label={
              <>
                {text.prune} <span class="small soft block">{text.pruneHint}</span>
              </>
            }
            checked={choices.prune}
            onChecked={(prune) => setChoices({ ...choices, prune })}
          />
        </section>
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
