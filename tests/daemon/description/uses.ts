// What an integrator writes over the generated clients, and what their types must not let him write.
import * as api from './integrator'
import * as oracle from './oracle'

export async function quoted(user: string): Promise<string> {
  const answer = await api.postQuoteV2({
    user,
    originChainId: 8453,
    destinationChainId: '0xa4b1',
    originCurrency: user,
    destinationCurrency: user,
    amount: '100000000000000000',
    tradeType: 'EXACT_INPUT',
  })
  if (answer.status !== 200) throw new Error(`${answer.status}: ${answer.data.message}`)
  const [step] = answer.data.steps
  const fee: string | undefined = answer.data.fees.relayer?.amountUsd
  return `${step.id} ${step.items[0].data.to} ${answer.data.details.currencyOut.amount} ${fee}`
}

export async function ended(requestId: string): Promise<boolean> {
  const { status, data } = await api.getIntentsStatusV3(requestId)
  return status === 200 && ['success', 'failure', 'refund'].includes(data.status)
}

export async function signed(chainId: string, transactionId: string): Promise<unknown> {
  const answer = await oracle.postAttestationsDepositoryDepositsV1({ chainId, transactionId })
  return answer.status === 200 ? answer.data.messages : answer.data.docs
}

// @ts-expect-error A quote needs more than a user.
void api.postQuoteV2({ user: '0x' })
type Body = Parameters<typeof api.postQuoteV2>[0]
// @ts-expect-error There is no such trade.
export const trade: Body['tradeType'] = 'EXACT'
// @ts-expect-error A status is of a request.
void api.getIntentsStatusV3()
