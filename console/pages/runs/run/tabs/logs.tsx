/** The lines that workers printed for a run, live, with filters. */
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { plainText } from '../../../../../client/plain.ts'
import type { LogLevel, RunLogLine } from '../../../../../protocol/jobs/logs.ts'
import { Button } from '../../../../design/button.tsx'
import { CopyButton } from '../../../../design/copy.tsx'
import { SearchField, SelectField } from '../../../../design/field.tsx'
import { Empty, Failure, Skeleton } from '../../../../design/states.tsx'
import { currentUrl, setQuery } from '../../../../router/router.ts'
import type { LiveRun } from '../data/live-run.ts'
import { runText as text } from '../text.ts'
import { ClockTime } from './clock-time.tsx'
import { LogLines } from './log-lines.ts'

/** Maximum number of rendered lines. */
const MAX_LINES = 2000
/** Delay between the last key press and the search. */
const TYPING_MS = 300
const levels: readonly LogLevel[] = ['debug', 'info', 'warn', 'error']

/** Shows the log lines of a run, or of one of its steps. */
export function Logs({
  project,
  id,
  only,
  ended,
  run,
}: {
  readonly project: string
  readonly id: string
  readonly only: string
  readonly ended: boolean
  readonly run: LiveRun
}) {
  const level = levels.find((one) => one === currentUrl.value.query.get('level')) ?? ''
  const contains = currentUrl.value.query.get('contains') ?? ''
  const [typed, setTyped] = useState(contains)
  useEffect(() => {
    const timer = setTimeout(() => typed !== contains && setQuery({ contains: typed }), TYPING_MS)
    return () => clearTimeout(timer)
  }, [typed])
  const logs = useMemo(
    () =>
      new LogLines(project, id, {
        ...(only !== '' && { step_key: only }),
        ...(level !== '' && { level }),
        ...(contains !== '' && { contains }),
      }),
    [project, id, only, level, contains],
  )
  useEffect(() => {
    void logs.start()
    return () => logs.stop()
  }, [logs])
  const { lines, older, loading, error } = logs.state.value
  const frame = useRef<HTMLDivElement>(null)
  const [follows, setFollows] = useState(true)
  useEffect(() => {
    if (follows && frame.current) frame.current.scrollTop = frame.current.scrollHeight
  }, [lines, follows])
  const steps = [...run.fold.steps.values()].filter(({ jobId }) => jobId !== undefined)
  const shown = lines.slice(-MAX_LINES)
  return (
    <section class="stack close" aria-labelledby="logs-title">
      <div class="row apart">
        <h2 id="logs-title">{text.logs}</h2>
        <div class="row">
          <SearchField label={text.searchLogs} value={typed} onValue={setTyped} />
          <SelectField
            label={text.logStep}
            unlabelled
            value={only}
            choices={[
              { value: '', label: text.allSteps },
              ...steps.slice(0, 200).map(({ key, name }) => ({ value: key, label: name ?? key })),
              ...(only !== '' && !steps.slice(0, 200).some(({ key }) => key === only)
                ? [{ value: only, label: only }]
                : []),
            ]}
            onValue={(value) => setQuery({ only: value })}
          />
          <SelectField
            label={text.logLevel}
            unlabelled
            value={level}
            choices={[
              { value: '', label: text.allLevels },
              ...levels.slice(1).map((value) => ({ value, label: text.levelOrWorse(value) })),
            ]}
            onValue={(value) => setQuery({ level: value })}
          />
          <CopyButton
            label={text.downloadLogs}
            value={() =>
              lines.map((line) => `${line.at} ${line.level} ${plainText(line.text)}`).join('\n')
            }
          />
        </div>
      </div>
      {error && <Failure error={error} />}
      {older && (
        <div>
          <Button kind="quiet" onClick={() => logs.older()}>
            {text.olderLines}
          </Button>
        </div>
      )}
      {lines.length === 0 ? (
        loading ? (
          <Skeleton />
        ) : (
          <Empty title={text.noLogs}>{text.noLogsHint}</Empty>
        )
      ) : (
        <div
          ref={frame}
          class="log-lines mono"
          role="log"
          aria-label={text.logs}
          aria-live="off"
          // biome-ignore lint/a11y/noNoninteractiveTabindex: needed to scroll by keyboard
          tabIndex={0}
          onScroll={({ currentTarget: { scrollTop, scrollHeight, clientHeight } }) =>
            setFollows(scrollTop + clientHeight >= scrollHeight - 8)
          }
        >
          {shown.map((line) => (
            <Line key={line.sequence} line={line} />
          ))}
        </div>
      )}
      {!follows && !ended && (
        <div>
          <Button kind="quiet" icon="down" onClick={() => setFollows(true)}>
            {text.paused}
          </Button>
        </div>
      )}
    </section>
  )
}

const Line = ({ line }: { readonly line: RunLogLine }) => (
  <div class={`log-line ${line.level}`}>
    <ClockTime at={line.at} />
    <span class="level">{line.level}</span>
    <span class="soft user-text clip" title={line.step_key}>
      {line.step_key}
    </span>
    <span class="user-text">
      <span class="user-text">{plainText(line.text)}</span>
      {line.fields && <span class="soft"> {JSON.stringify(line.fields)}</span>}
      {line.truncated && <span class="soft"> ({text.truncated})</span>}
    </span>
  </div>
)
