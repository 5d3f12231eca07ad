import { describe, expect, it } from "vitest";
import { isUntouched, samplesIn } from "@/lib/first-steps";

const seeded = [
  { documents: 41, samples: 41 },
  { documents: 6, samples: 6 },
];

describe("first steps", () => {
  it("stay while there are only samples or nothing", () => {
    expect(isUntouched(seeded, 0)).toBe(true);
    expect(isUntouched([{ documents: 0, samples: 0 }], 0)).toBe(true);
  });
  it("end with the first document of one's own and with the first question", () => {
    expect(isUntouched([{ documents: 42, samples: 41 }], 0)).toBe(false);
    expect(isUntouched(seeded, 1)).toBe(false);
  });
  it("count the samples of all libraries", () => {
    expect(samplesIn(seeded)).toBe(47);
  });
});
