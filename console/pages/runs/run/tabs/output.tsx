/** The input and the output of a run, with the location of an error. */
import type { ComponentChildren } from 'preact'
import { Button } from '../../../../design/button.tsx'
import { Notice } from '../../../../design/states.tsx'
import { Tree } from '../../../../design/tree.tsx'
import { setQuery } from '../../../../router/router.ts'
import { hasEnded } from '../data/fold.ts'
import type { LiveRun, RunDetail } from '../data/live-run.ts'
import { runText as text } from '../text.ts'

const Part = ({
  title,
  value,
  empty,
  children,
}: {
  readonly title: string
  readonly value: unknown
  readonly empty?: string
  readonly children?: ComponentChildren
}) =>
  value === undefined && empty === undefined ? null : (
    <section class="stack close">
      <h2>{title}</h2>
      {value === undefined ? <p class="soft">{empty}</p> : <Tree value={value} open={2} />}
      {children}
    </section>
  )

/** Shows the input and the output of a run. */
export function InputOutput({
  run,
  detail,
  status,
}: {
  readonly run: LiveRun
  readonly detail: RunDetail
  readonly status: string
}) {
  run.version.value
  const failed = [...run.fold.steps.values()].filter((step) => step.status === 'failed')
  const { result, error_message, error_type } = detail
  const isLoop = 'loop_id' in detail
  return (
    <div class="columns">
      <div class="stack">
        <Part
          title={text.input}
          value={isLoop ? undefined : detail.input}
          {...(!isLoop && { empty: text.noInput })}
        />
        {isLoop && (
          <>
            <Part title={text.triggerEvent} value={detail.event} empty={text.noInput} />
            <Part title={text.config} value={detail.config} />
          </>
        )}
      </div>
      <div class="stack">
        {status === 'failed' && (
          <section class="stack close">
            <h2>{text.error}</h2>
            <Notice tone="bad">
              <div class="user-text">{error_message ?? text.failed}</div>
              {error_type !== undefined && <div class="small mono user-text">{error_type}</div>}
              {failed.slice(0, 20).map(({ key, name, error }) => (
                <div key={key} class="row">
                  <Button
                    kind="quiet"
                    onClick={() => setQuery({ tab: '', step: key }, { push: true })}
                  >
                    {text.jumpToStep}
                  </Button>
                  <span class="grow user-text">
                    {name ?? key}
                    {error !== undefined && error !== error_message && `: ${error}`}
                  </span>
                </div>
              ))}
            </Notice>
          </section>
        )}
        <Part
          title={text.runOutput}
          value={result}
          empty={hasEnded(status) ? text.noOutputEnded : text.noOutput}
        />
      </div>
    </div>
  )
}
