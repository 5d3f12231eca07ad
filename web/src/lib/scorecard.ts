import type { ReportExperiment } from "@/api/types";

export interface ScoreRow {
  /** The question's id. */
  question: string;
  /** Its words; the id where the report does not have them. */
  text: string;
  /** One value per arm, in the order of the experiment; null where an arm lacks it. */
  values: (number | null)[];
  spread: number;
}

/** Questions with every arm's value, those on which the arms differ most first. */
export function scorecard(experiment: ReportExperiment): ScoreRow[] {
  const questions = new Set(experiment.arms.flatMap((arm) => Object.keys(arm.per_question)));
  return [...questions]
    .map((question) => {
      const values = experiment.arms.map((arm) => arm.per_question[question] ?? null);
      const known = values.filter((value) => value !== null);
      return { question, text: experiment.question_texts[question] ?? question, values, spread: Math.max(...known) - Math.min(...known) };
    })
    .sort((a, b) => b.spread - a.spread || a.question.localeCompare(b.question));
}

/** How one arm did, in numbers that everybody can read: test questions, those it found an answer to, those with it in the first place. */
export function tally(experiment: ReportExperiment, arm: string): { questions: number; found: number; first: number } {
  const values = Object.values(experiment.arms.find((one) => one.name === arm)?.per_question ?? {});
  return { questions: values.length, found: values.filter((value) => value > 0).length, first: values.filter((value) => value >= 1 - SAME).length };
}

export interface FoundPassage {
  id: string;
  preview: string;
  /** Whether the judgements say that it answers the question. */
  relevant: boolean;
}

/** What an arm found for a question, best first; empty where the report does not say. */
export function foundBy(experiment: ReportExperiment, arm: string, question: string): FoundPassage[] {
  const relevant = experiment.relevant[question] ?? [];
  return (experiment.found[arm]?.[question] ?? []).filter((id) => id in experiment.previews).map((id) => ({ id, preview: experiment.previews[id] ?? "", relevant: relevant.includes(id) }));
}

export interface ArmDifference {
  /** Second arm minus first, worst to best. */
  differences: { question: string; value: number }[];
  better: number;
  worse: number;
  same: number;
  mean: number;
}

/** Differences smaller than this are rounding, not a change of rank. */
const SAME = 1e-9;

/** What changes from one arm to another, question by question. */
export function armDifference(experiment: ReportExperiment, from: string, to: string): ArmDifference {
  const first = experiment.arms.find((arm) => arm.name === from)?.per_question ?? {};
  const second = experiment.arms.find((arm) => arm.name === to)?.per_question ?? {};
  const differences = Object.entries(first)
    .flatMap(([question, value]) => {
      const other = second[question];
      return other === undefined ? [] : [{ question, value: other - value }];
    })
    .sort((a, b) => a.value - b.value || a.question.localeCompare(b.question));
  const better = differences.filter((d) => d.value > SAME).length;
  const worse = differences.filter((d) => d.value < -SAME).length;
  const sum = differences.reduce((total, d) => total + d.value, 0);
  return { differences, better, worse, same: differences.length - better - worse, mean: differences.length === 0 ? 0 : sum / differences.length };
}
